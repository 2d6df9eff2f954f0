"""Find numbers of payment cards: digits in the usual groups, of a known issuer, whose check digit is right.

IBANs stay: they stand on every invoice, open nothing by themselves, and people ask for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nanoclaw_memory.patterns import regex

# 4-4-4-4, 4-6-5 (American Express), 4-6-4 (Diners), 4-4-4-4-3, or no groups at all; the same sign between all.
_GROUPED = regex(
    r"(?<![\w.,+/#=&?-])(?:\d{4}(?P<sign>[ \u00a0.-])\d{4}(?P=sign)\d{4}(?P=sign)\d{4}(?:(?P=sign)\d{1,3})?|"
    r"3\d{3}(?P<amex>[ \u00a0.-])\d{6}(?P=amex)\d{4,5}|\d{14,19})(?![\w/=&]|[.,-]\d)"
)
# Visa, Mastercard (two ranges), American Express, Diners, Discover, JCB, Maestro, UnionPay
_ISSUER = regex(
    r"4(?:\d{12}|\d{15}|\d{18})\Z|(?:5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12})\Z|"
    r"3[47]\d{13}\Z|3(?:0[0-5]|[689]\d)\d{11}\Z|6(?:011|5\d\d|4[4-9]\d)\d{12}\Z|35(?:2[89]|[3-8]\d)\d{12}\Z|"
    r"(?:50[0-9]{2}|5[6-8]\d\d|6\d{3})\d{10,15}\Z"
)
# Other numbers with a check digit of the same kind.
_OTHER = regex(
    r"\b(?:imei|isbn|ean|gtin|order|bestell\w*|tracking|sendung\w*|parcel|paket\w*|serial|serien\w*|invoice|"
    r"rechnung\w*|ticket|timestamp|id|uuid|build|commit|iban|iccid|sim)\b[^\n\d]{0,20}\Z",
    re.I,
)
_BEFORE = 40


def find_cards(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the numbers of payment cards."""
    for found in _GROUPED.finditer(text):
        digits = re.sub(r"\D", "", found[0])
        is_card = _ISSUER.match(digits) and _is_checked(digits) and len(set(digits)) > 1
        if is_card and not _OTHER.search(text[max(0, found.start() - _BEFORE) : found.start()]):
            yield found.span()


def _is_checked(digits: str) -> bool:
    """Return whether the last digit is the check digit of the others (Luhn)."""
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0
