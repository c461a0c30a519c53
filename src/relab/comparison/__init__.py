"""Which config is better, and can one tell yet? Runs of any tool in, one honest table out (docs/compare.md)."""
