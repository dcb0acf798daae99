"""The C tools for other systems, which zig has: an archiver under the name `ar`, a compiler for `aarch64-macos` under `aarch64-macos-cc`."""

import os
import sys

name = os.path.basename(sys.argv[0])
if name == "ar":
    tool = ["ar"]
else:
    tool = ["cc", "-target", name.removesuffix("-cc")]
# Rust's words for the target, which zig does not know.
arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--target=")]
os.execv(sys.executable, [sys.executable, "-m", "ziglang", *tool, *arguments])
