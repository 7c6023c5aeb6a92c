"""VisualQA: questions about images and their answers, from the two JSON files of a part.

The format is described at https://visualqa.org/vqa_v1_download.html: `questions` and `annotations`
are lists of objects, in the same order, with the same `question_id`.
"""

import collections
import json
import re
from pathlib import Path
from typing import Any, Dict, List

from ..files.records import DamagedFile, PathLike, input_path
from ..raw import DataFromList

_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


class VisualQA(DataFromList):
    """Yields `[question, annotation]`, dicts as they are in the files, which are held in memory.

    A question has `question`, `question_id` and `image_id`; an annotation has
    `multiple_choice_answer`, `answers` and others. The files are such as
    `OpenEnded_mscoco_train2014_questions.json` and `mscoco_train2014_annotations.json`.
    """

    def __init__(self, question_file: PathLike, annotation_file: PathLike) -> None:
        questions = _read(question_file, "questions", "question")
        annotations = _read(annotation_file, "annotations", "multiple_choice_answer")
        pairs = [list(pair) for pair in zip(questions, annotations)]
        alike = all(question["question_id"] == each["question_id"] for question, each in pairs)
        if not alike or len(questions) != len(annotations):
            raise DamagedFile(
                f"{annotation_file} has {len(annotations)} answers, and {question_file} "
                f"{len(questions)} questions, but not the same ones. Are they of one part?"
            )
        super().__init__(pairs, shuffle=False)

    def get_common_answer(self, n: int) -> List[str]:
        """Returns the `n` most common answers of multiple choice, the most common one first."""
        return _most_common((each["multiple_choice_answer"] for _, each in self.lst), n)

    def get_common_question_words(self, n: int) -> List[str]:
        """Returns the `n` most common words of questions, in small letters."""
        words = (_WORD.findall(question["question"].lower()) for question, _ in self.lst)
        return _most_common((word for found in words for word in found), n)


def _most_common(texts: Any, n: int) -> List[str]:
    return [text for text, _ in collections.Counter(texts).most_common(n)]


def _read(path: PathLike, name: str, needed: str) -> List[Dict[str, Any]]:
    """Returns a list of objects, each with an id and one more key."""
    path = input_path(path)
    try:
        found = json.loads(Path(path).read_bytes().decode("utf-8"))[name]
        damaged = [each for each in found if not isinstance(each[needed], str)]
        damaged += [each for each in found if not isinstance(each["question_id"], int)]
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"{path} is not a file of VisualQA with {name}: {error!r}") from error
    if damaged or not found:
        raise DamagedFile(f"{path} has {len(found)} {name}, of which {len(damaged)} are damaged.")
    return found
