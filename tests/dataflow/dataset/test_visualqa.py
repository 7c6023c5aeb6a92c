"""VisualQA pairs the questions of one JSON file with the answers of another."""

import json

import pytest

from tensorpack.dataflow.dataset import VisualQA
from tests.contracts.dataflow import DataFlowContract

ASKED = ["What colour is the man's hat?", "What is it?", "Is it a T-shirt?"]
ANSWERS = ["red", "hat", "red"]
QUESTIONS = [
    {"image_id": 9, "question": question, "question_id": number}
    for number, question in enumerate(ASKED)
]
ANNOTATIONS = [
    {"image_id": 9, "question_id": number, "multiple_choice_answer": answer, "answers": []}
    for number, answer in enumerate(ANSWERS)
]


@pytest.fixture
def files(tmp_path):
    """Writes the two files; returns their paths."""

    def write(questions=QUESTIONS, annotations=ANNOTATIONS):
        paths = tmp_path / "questions.json", tmp_path / "annotations.json"
        paths[0].write_text(json.dumps({"info": {}, "questions": questions}))
        paths[1].write_text(json.dumps({"info": {}, "annotations": annotations}))
        return paths

    return write


class TestVisualQA(DataFlowContract):
    length = 3

    @pytest.fixture(autouse=True)
    def paths(self, files):
        self.files = files()

    def make_flow(self):
        return VisualQA(*self.files)


def test_questions_come_with_their_answers(files):
    flow = VisualQA(*map(str, files()))
    assert list(flow) == [list(pair) for pair in zip(QUESTIONS, ANNOTATIONS)]
    assert flow.get_common_answer(1) == ["red"]
    assert flow.get_common_answer(5) == ["red", "hat"]
    assert flow.get_common_question_words(3) == ["is", "what", "it"]
    assert {"man's", "t-shirt"} < set(flow.get_common_question_words(99))


def test_files_of_two_parts(files):
    with pytest.raises(ValueError, match="does not answer the questions of"):
        VisualQA(*files(questions=QUESTIONS[::-1]))
