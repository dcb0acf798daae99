"""Makes site/blocks.ttf: a font whose capital letters are blocks of different heights, so that a picture shows whether it was used.

Needs fonttools. The font is part of the repository; this is how it was made.
"""

import string
import sys

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

EM = 1000
BLOCK_WIDTH = 500


def block(height):
    pen = TTGlyphPen(None)
    pen.moveTo((50, 0))
    for corner in [(50, height), (BLOCK_WIDTH - 50, height), (BLOCK_WIDTH - 50, 0)]:
        pen.lineTo(corner)
    pen.closePath()
    return pen.glyph()


names = [".notdef", "space", *string.ascii_uppercase]
builder = FontBuilder(EM, isTTF=True)
builder.setupGlyphOrder(names)
builder.setupCharacterMap({ord(" "): "space", **{ord(letter): letter for letter in string.ascii_uppercase}})
glyphs = {name: block(100 + 30 * number) for number, name in enumerate(names)}
glyphs["space"] = TTGlyphPen(None).glyph()
builder.setupGlyf(glyphs)
builder.setupHorizontalMetrics({name: (BLOCK_WIDTH, 50) for name in names})
builder.setupHorizontalHeader(ascent=900, descent=-100)
builder.setupNameTable({"familyName": "Fulmar Blocks", "styleName": "Regular"})
builder.setupOS2(sTypoAscender=900, sTypoDescender=-100, usWinAscent=900, usWinDescent=100)
builder.setupPost()
builder.font["head"].created = builder.font["head"].modified = 0
builder.font.recalcTimestamp = False
builder.save(sys.argv[1])
