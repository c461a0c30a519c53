"""What makes a manipulation policy better once it exists? The study of a fine-tuning log on a cube that is picked up."""
