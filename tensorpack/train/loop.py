"""Counts epochs and steps, and nothing else."""

__all__ = ["TrainLoop"]


class TrainLoop:
    """Where a run is: which epoch, which step of it, and how many steps there have been in all.

    Attributes:
      steps_per_epoch: steps in each epoch.
      starting_epoch: number of the first epoch of this run.
      max_epoch: number of the last one.
      epoch_num: the running epoch; `starting_epoch - 1` before the first.
      local_step: index of the running step in its epoch, from 0; -1 before the first.
      global_step: steps finished or running, those of earlier runs included.
      steps_done: how many steps of the running epoch have finished.
      steps_taken: how many steps have finished in all.
    """

    def __init__(self) -> None:
        self.steps_per_epoch = 0
        self.starting_epoch = 1
        self.max_epoch = 0
        self.epoch_num = 0
        self.local_step = -1
        self.global_step = 0
        self.steps_done = 0
        self.steps_taken = 0

    def config(self, steps_per_epoch: int, starting_epoch: int, max_epoch: int) -> None:
        """Sets the plan of a run.

        Raises:
          ValueError: there would be no step in an epoch, or epochs are not counted from 1.
        """
        if int(steps_per_epoch) < 1:
            raise ValueError(f"steps_per_epoch must be at least 1, got {steps_per_epoch}.")
        if int(starting_epoch) < 1 or int(max_epoch) < 1:
            raise ValueError(
                f"Epochs are counted from 1, got starting_epoch={starting_epoch}, "
                f"max_epoch={max_epoch}."
            )
        self.steps_per_epoch = int(steps_per_epoch)
        self.starting_epoch = int(starting_epoch)
        self.max_epoch = int(max_epoch)
        self.epoch_num = self.starting_epoch - 1
        self.local_step = -1
        self.steps_done = 0

    def go_on_from(self, global_step: int) -> None:
        """Says how many steps there have been before this run."""
        self.global_step = self.steps_taken = global_step

    def epochs(self) -> range:
        """The numbers of the epochs to run; empty if an earlier run has done them all."""
        return range(self.starting_epoch, self.max_epoch + 1)

    def begin_epoch(self, epoch_num: int, steps_done: int = 0) -> None:
        """Enters an epoch, of which an earlier run may have done some steps."""
        self.epoch_num = epoch_num
        self.local_step = steps_done - 1
        self.steps_done = steps_done

    def begin_step(self) -> None:
        """Enters the next step."""
        self.local_step += 1
        self.global_step += 1

    def end_step(self) -> None:
        """Counts the step that was entered as done."""
        self.steps_done += 1
        self.steps_taken = self.global_step
