"""How do Dreamer's gradients become steps? Each tensor clipped against its own size, then LaProp, with a warm-up.

Adaptive clipping (Brock et al. 2021): |g| <= clip * max(1e-3, |theta|) for every tensor by itself.
LaProp (Ziyin et al. 2020): v follows g²; the momentum follows g / sqrt(v), each gradient scaled as it comes.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from relab.train.nets.networks import Params
from relab.train.nets.optim import Moments

EPS = 1e-20
LEAST_NORM = 1e-3  # of a tensor, as clipping counts it: one that begins at zero may move


class LaProp(Moments):
    """m, v over one flat vector; the learning rate may differ from tensor to tensor."""

    def __init__(self, params: Params, lr: Mapping[str, float], clip: float, warmup: int, betas: tuple[float, float]):
        super().__init__(params.flat)
        self.params, self.clip, self.warmup, self.betas = params, clip, warmup, betas
        self.weights, self.grads = [p.detach() for p in params.named.values()], list(params.grads.values())
        self.lr = torch.cat([torch.full((p.numel(),), lr[name.split("/")[0]]) for name, p in params.named.items()])

    @torch.no_grad()
    def step(self, scale: float | Tensor = 1.0) -> float:
        """One step from the flat gradient, which is then zero; the gradient's norm before clipping."""
        p, (b1, b2) = self.params, self.betas
        norm = self.clip_gradients()
        self.updates += 1
        rise = min(1.0, self.updates / self.warmup) if self.warmup else 1.0
        self.v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
        scaled = p.grad / (self.v / (1 - b2**self.updates)).sqrt_().add_(EPS)
        self.m.lerp_(scaled, 1 - b1)
        p.flat.addcmul_(self.m, self.lr * scale, value=-rise / (1 - b1**self.updates))
        p.grad.zero_()
        return norm

    def clip_gradients(self) -> float:
        sizes = torch.stack(torch._foreach_norm(self.weights)).clamp_(min=LEAST_NORM)
        norms = torch.stack(torch._foreach_norm(self.grads))
        if self.clip:
            factors = (self.clip * sizes / norms.clamp(min=1e-12)).clamp_(max=1.0)
            torch._foreach_mul_(self.grads, list(factors.unbind()))
        return float(torch.linalg.vector_norm(norms))
