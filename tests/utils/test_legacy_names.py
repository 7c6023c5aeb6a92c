from tensorpack.utils.legacy_names import give_both_names


class Base:
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        give_both_names(cls, "new", "old")

    def new(self):
        return "base"

    old = new


class ByOldName(Base):
    def old(self):
        return "old, " + super().old()


class ByNewName(ByOldName):
    def new(self):
        return "new, " + super().new()


def test_a_method_has_both_names_whichever_is_written():
    assert ByOldName().new() == ByOldName().old() == "old, base"
    assert ByNewName().new() == ByNewName().old() == "new, old, base"
