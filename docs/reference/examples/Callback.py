from classifier import train

import tensorpack as tp


class CountSteps(tp.Callback):
    def _before_train(self):
        self.steps = 0

    def _trigger_step(self):
        self.steps += 1

    def _trigger_epoch(self):
        self.trainer.monitors.put_scalar("steps_seen", self.steps)


train([CountSteps()])
