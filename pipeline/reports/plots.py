"""Bar charts as text: the UI shows Markdown under 1,000 characters at once, and longer Markdown behind a click."""

from collections.abc import Mapping

WIDTH = 20  # characters of the longest bar; 24 hours stay under the limit
EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar_chart(counts: Mapping[str, int]) -> str:
    """A bar for each name, with its count and, when they are few, its share.

    Args:
        counts: Name -> count, in the order to be drawn.

    Returns:
        A code block of Markdown.

    >>> print(bar_chart({"view": 80, "cart": 10, "a `b`": 0}))
    ```
    view  ████████████████████ 80 (88.9 %)
    cart  ██▌                  10 (11.1 %)
    a 'b'                      0
    ```
    """
    total, most = sum(counts.values()), max(counts.values(), default=0)
    longest = max(map(len, counts), default=0)
    lines = []
    for name, count in counts.items():
        share = f" ({count / total:.1%})".replace("%", " %") if count and len(counts) < WIDTH else ""
        lines.append(f"{name.replace('`', chr(39)):{longest}} {_bar(count, most)} {count:,}{share}")
    return "\n".join(["```", *lines, "```"])


def _bar(count: int, most: int) -> str:
    """A bar of `WIDTH` characters; what is there at all shows at least a line."""
    eighths = max(round(8 * WIDTH * count / max(1, most)), 1 if count else 0)
    bar = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    return bar.ljust(WIDTH)
