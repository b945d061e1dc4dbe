"""Choose the facts of a recipe: its times, amount and energy, and the ingredients that it declares."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from scrapy_dripper.choose.headings import BLOCKS_BELOW_NAME, letters_of, name_block
from scrapy_dripper.choose.scored import ELSEWHERE, UNSEEN, ScoredPage
from scrapy_dripper.declared.schema_org import tokens
from scrapy_dripper.page.page import Bools, Flag
from scrapy_dripper.page.vocabulary import Group, either

TIME_LABELS: Group = (
    *("total", "prep(?:aration)?", "cook(?:ing)?", "bak(?:e|ing)", "active", "ready in", "time", "rest(?:ing)?"),
    *(r"\w{0,20}zeit", r"\w{0,20}dauer", "temps", "durée", "préparation", "cuisson", "repos", "tiempo", "duración"),
    *("preparación", "cocción", "tempo", "preparo", "preparazione", "cottura", "bereidingstijd", "oventijd", "czas"),
    *("время", "调理时间", "烹饪时间", "所要時間", "調理時間", "조리시간"),
)
"""Words in the labels of the times of a recipe."""

AMOUNT_LABELS: Group = (
    *("servings?", "serves", "yields?", "makes", "portions?", "portionen", "personen", "ergibt", "personnes", "parts"),
    *("porciones", "raciones", "porções", "porzioni", "persone", "porties", "porcj[ei]", "порци[ия]"),
    *("份量", "人份", "分量", "人分", "인분"),
)
"""Words in the labels of how much a recipe makes."""

ENERGY_LABELS: Group = (
    *("calories?", "k?cals?", "energy", "kalorien", "energie", "calorías", "energía", "calorias", "kalorie", "калории"),
    *("カロリー", "熱量", "热量", "칼로리"),
)
"""Words in the labels of the energy of a dish."""

LONGEST_FACT = 500
"""Maximum length of a fact with its label, in characters."""
_NO_INGREDIENT = UNSEEN | ELSEWHERE & ~Flag.FORM | Flag.ASIDE | Flag.BUTTON
MOST_AMOUNT = 4
"""Maximum number of words of an amount, such as 1 1/2 cups. One of more than two letters may be no number."""

_energy, _label = either(ENERGY_LABELS), either(TIME_LABELS, AMOUNT_LABELS, ENERGY_LABELS)
_begins_with_label = re.compile(rf"[^\d\n]{{0,30}}\b(?:{_label})\b", re.I).match
_says_energy = re.compile(rf".{{0,60}}\b(?:{_energy})\b\W{{0,9}}\d", re.I | re.S).match
_states = re.compile(
    rf"[^\d\n]{{0,30}}\b(?:{_label})\b[^\d\n]{{0,20}}\d(?:\W{{0,3}}\w{{1,20}}){{0,6}}\W{{0,3}}"
    rf"|[^\d\n]{{0,5}}\d[\d:]{{0,5}}\W{{0,2}}(?:\w{{1,10}}\W)?(?:{_label})\W{{0,3}}",
    re.I,
).fullmatch


def of_recipe(scored: ScoredPage, main: Bools) -> Iterator[int]:
    """Yield the blocks below the name of a recipe that state its facts. Some blocks are main."""
    name = name_block(scored, main)
    yield from _stated(scored, main, name)
    yield from _ingredients(scored, main, name)


def _stated(scored: ScoredPage, main: Bools, name: int) -> Iterator[int]:
    """Yield the texts above the end of the main content of a recipe that state its times, its amount or its energy,
    some of them in two blocks.
    """
    page, texts = scored.page, scored.page.blocks.text
    if "recipe" not in page.declared.types:
        return
    may = (scored.flags & (UNSEEN | ELSEWHERE | Flag.ASIDE) == 0) & (scored.chars <= LONGEST_FACT)
    may[: name + 1], may[int(np.flatnonzero(main)[-1]) + BLOCKS_BELOW_NAME :] = False, False
    alone = may & (page.blocks.links == 0)
    for i in np.flatnonzero(may).tolist():
        lines = texts[i].split("\n")
        stated = sum(_states(line) is not None for line in lines)
        if 2 * stated >= len(lines) > 2 or (alone[i] and (stated == len(lines) or _says_energy(texts[i]))):
            yield i
        elif alone[i : i + 2].sum() > 1 and _begins_with_label(texts[i]) and _states(f"{texts[i]} {texts[i + 1]}"):
            yield from (i, i + 1)


def _ingredients(scored: ScoredPage, main: Bools, name: int) -> Iterator[int]:
    """Yield the texts below the name that are declared ingredients, each once, also behind an amount, and some of them
    in two blocks; and lists of which most lines are.
    """
    page, texts = scored.page, scored.page.blocks.text
    left = Counter(letters_of(fact.text) for fact in page.facts if fact.kind == "ingredient")
    if len(left) <= 1:
        return

    def found(text: str) -> list[str]:
        """Return the ingredients among the lines of a text."""
        return [one for line in text.split("\n") if (one := _ingredient(tokens(line), left))]

    for i in np.flatnonzero(main).tolist():
        left.subtract(found(texts[i]))
    is_seen = (scored.flags & _NO_INGREDIENT == 0) & (scored.chars <= 3 * LONGEST_FACT)
    is_seen[: name + 1] = False
    for i in np.flatnonzero(is_seen & ~main).tolist():
        end, those = i + 1, found(texts[i])
        if not those and is_seen[i : i + 2].sum() > 1:
            end, those = i + 2, found(f"{texts[i]} {texts[i + 1]}")
        if any(left[one] > 0 for one in those) and 2 * len(those) > texts[i].count("\n") + 1:
            left.subtract(those)
            yield from range(i, end)


def _ingredient(words: Sequence[str], declared: Collection[str]) -> str:
    """Return the declared ingredient that some words are, also behind numbers and a unit, or an empty string."""
    for amount in range(min(len(words), MOST_AMOUNT + 1)):
        said = "".join(words[amount:])
        if said in declared:
            return said
        if amount == 0 and not words[0][0].isnumeric():
            break
        if sum(len(word) > 2 and not word[0].isnumeric() for word in words[: amount + 1]) > 1:
            break
    return ""
