"""Counts the words of a text: reads one file, writes another, says where it runs."""
import collections
import json
import os
import platform
import re
import sys

source, target = sys.argv[1:3]
with open(source, encoding="utf-8") as file:
    words = re.findall(r"[a-z']+", file.read().lower())
counts = collections.Counter(words)
with open(target, "w", encoding="utf-8") as file:
    json.dump({"words": len(words), "different": len(counts), "most": counts.most_common(3)}, file)
    file.write("\n")
print("Python %s on %s, as %s in %s" % (platform.python_version(), platform.node(), os.environ.get("USER", os.getuid()), os.getcwd()))
print("read %s (%d words), wrote %s" % (source, len(words), target))
