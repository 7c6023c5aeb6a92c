"""What connects tensorpack to other libraries; imported by its own address, such as `.keras`."""

__all__ = []
