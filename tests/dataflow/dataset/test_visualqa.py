"""VisualQA pairs the questions of one JSON file with the answers of another."""

import json

import pytest

from tensorpack.dataflow.dataset import VisualQA

TEXTS = ["What colour is the man's hat?", "What is it?", "Is it a T-shirt?"]
QUESTIONS = [{"question": text, "question_id": number} for number, text in enumerate(TEXTS)]
ANNOTATIONS = [
    {"question_id": number, "multiple_choice_answer": answer}
    for number, answer in enumerate(["red", "hat", "red"])
]


def test_questions_come_with_their_answers(tmp_path):
    questions, annotations = tmp_path / "questions.json", tmp_path / "annotations.json"
    questions.write_text(json.dumps({"info": {}, "questions": QUESTIONS}))
    annotations.write_text(json.dumps({"info": {}, "annotations": ANNOTATIONS}))
    flow = VisualQA(str(questions), annotations)
    assert list(flow) == [list(pair) for pair in zip(QUESTIONS, ANNOTATIONS)]
    assert flow.get_common_answer(1) == ["red"]
    assert flow.get_common_answer(5) == ["red", "hat"]
    assert flow.get_common_question_words(3) == ["is", "what", "it"]
    assert {"man's", "t-shirt"} < set(flow.get_common_question_words(99))
    questions.write_text(json.dumps({"questions": QUESTIONS[::-1]}))
    with pytest.raises(ValueError, match="does not answer the questions of"):
        VisualQA(questions, annotations)
