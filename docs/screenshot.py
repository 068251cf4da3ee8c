"""Draws the terminal contents on stdin, with their escape sequences, as SVG. Needs Debian's python3-rich."""

import re
import sys

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

console = Console(record=True, width=120, file=open("/dev/null", "w"))
console.print(Text.from_ansi(sys.stdin.read()), no_wrap=True, end="")
# Without the web font: a picture in a README loads nothing.
form = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.S)
print(console.export_svg(title="gpumemtop", code_format=form))
