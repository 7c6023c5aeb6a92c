"""VisualQA: questions about images and their answers, from the two JSON files of a part.

The format is described at https://visualqa.org/vqa_v1_download.html: `questions` and `annotations`
are lists of objects, in the same order, with the same `question_id`.
"""

import collections
import json
import re
from pathlib import Path
from typing import Counter, List

from ..files.records import PathLike
from ..raw import DataFromList

_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


class VisualQA(DataFromList):
    """Yields `[question, annotation]`, dicts as they are in the files, which are held in memory.

    A question has `question`, `question_id` and `image_id`; an annotation has
    `multiple_choice_answer`, `answers` and others.
    """

    def __init__(self, question_file: PathLike, annotation_file: PathLike) -> None:
        questions = json.loads(Path(question_file).read_text("utf-8"))["questions"]
        annotations = json.loads(Path(annotation_file).read_text("utf-8"))["annotations"]
        pairs = list(map(list, zip(questions, annotations)))
        if any(q["question_id"] != a["question_id"] for q, a in pairs):
            raise ValueError(f"{annotation_file} does not answer the questions of {question_file}.")
        super().__init__(pairs, shuffle=False)

    def get_common_answer(self, n: int) -> List[str]:
        """Returns the `n` most common answers of multiple choice, the most common one first."""
        answers = collections.Counter(answer["multiple_choice_answer"] for _, answer in self.lst)
        return [text for text, _ in answers.most_common(n)]

    def get_common_question_words(self, n: int) -> List[str]:
        """Returns the `n` most common words of questions, in small letters."""
        words: Counter[str] = collections.Counter()
        for question, _ in self.lst:
            words.update(_WORD.findall(question["question"].lower()))
        return [word for word, _ in words.most_common(n)]
