"""Pictures for the pages: small landscapes that are drawn from their names, so that no files are needed."""

from __future__ import annotations

from hashlib import sha256
from math import sin


def picture(name: str) -> str:
    """Return an SVG landscape. The same name always gives the same picture."""
    seed = sha256(name.encode()).digest()
    hue = seed[0] * 360 // 256
    hills = []
    for layer in range(3):
        phase, height = seed[layer + 1] / 20, 250 + 50 * layer
        points = " ".join(f"{x},{height + 30 * sin(x / (70 + 20 * layer) + phase):.0f}" for x in range(0, 641, 20))
        hills.append(f'<polygon points="0,400 {points} 640,400" fill="hsl({hue + 60},30%,{62 - 16 * layer}%)"/>')
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400">'
        f'<rect width="640" height="400" fill="hsl({hue},50%,82%)"/>'
        f'<circle cx="{100 + seed[4] * 1.7:.0f}" cy="110" r="42" fill="hsl(45,90%,88%)"/>{"".join(hills)}</svg>'
    )
