"""What connects tensorpack to Keras, and what programs on games share; imported by its address."""

__all__ = []
