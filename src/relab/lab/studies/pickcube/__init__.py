"""What makes a policy better once it exists? The study of a fine-tuning log about a cube that is picked up."""
