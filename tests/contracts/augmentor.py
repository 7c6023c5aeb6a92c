"""What every augmentor must do: the tests that the library has for those of its users, too."""

from tensorpack.testing.augmentor import AugmentorContract, picture

__all__ = ["AugmentorContract", "picture"]
