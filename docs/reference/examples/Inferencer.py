from classifier import batches, train

import tensorpack as tp


class Confidence(tp.Inferencer):
    """The mean of the probability of the class that is taken."""

    def _before_inference(self):
        self.largest = []

    def _get_fetches(self):
        return ["probability"]

    def _on_fetches(self, results):
        self.largest.extend(results[0].max(axis=1))

    def _after_inference(self):
        return {"confidence": sum(self.largest) / len(self.largest)}


train([tp.InferenceRunner(batches(5, seed=1), Confidence())])
