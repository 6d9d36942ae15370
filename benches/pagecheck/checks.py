"""What is asked of every page."""

# Labels that overlap each other or leave the window, and a page that is wider than its window.
LAYOUT = """(() => {
  const faults = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width)
    faults.push(`is ${document.documentElement.scrollWidth} wide in a window of ${width}`);
  const boxes = (group) => [...group.children].filter((child) => child.tagName === "I").map((child) =>
    [child.textContent, child.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
  for (const group of document.querySelectorAll(".plot,.axis")) {
    const labels = boxes(group);
    labels.forEach(([text, box], place) => {
      if (box.left < 0 || box.right > width) faults.push(`label ${text} leaves the window`);
      for (const [other, next] of labels.slice(place + 1))
        if (box.left < next.right && next.left < box.right && box.top + 2 < next.bottom && next.top + 2 < box.bottom)
          faults.push(`labels ${text} and ${other} overlap`);
    });
  }
  for (const key of document.querySelectorAll(".key li,.cards b,h1,h2,h3,button"))
    if (key.scrollWidth > key.clientWidth + 1 && key.clientWidth > 0) faults.push(`text is cut: ${key.textContent}`);
  return faults;
})()"""

# What a page may have to have, and how it is seen there.
PARTS = {
    "panels": "document.querySelector('.time .panel') !== null",
    "stack": "document.querySelector('.panel[data-stack]') !== null",
    "grid": "[...document.querySelectorAll('.hosts')].length > 0 && [...document.querySelectorAll('.hosts a')].every("
            "(link) => document.querySelector(`[id=\"${link.hash.slice(1)}\"]`) || link.pathname.startsWith('/run/'))",
    "units": "!document.getElementById('units').hidden",
    "document": "document.getElementById('document') !== null && document.getElementById('save') !== null",
}

MIDDLE = """(() => {
  const plot = document.querySelector(".time .plot");
  if (!plot) return null;
  plot.scrollIntoView({block: "center"});
  const box = plot.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
})()"""

HOVER = """({
  lines: [...document.querySelectorAll(".time .cursor")].filter((line) => !line.hidden).length,
  panels: document.querySelectorAll(".time .panel").length,
  values: [...document.querySelectorAll(".time .key b")].map((value) => value.textContent).filter(Boolean),
  stack: [...document.querySelectorAll(".panel[data-stack] .key")].map((key) =>
    [...key.querySelectorAll("b")].reduce((sum, value) => sum + parseFloat(value.textContent || "0"), 0)),
})"""


def check_hover(tab):
    """The line that follows the pointer, and the values there."""
    middle = tab.evaluate(MIDDLE)
    if middle is None:
        return []
    tab.move_to(middle[0], middle[1])
    if not tab.await_true("[...document.querySelectorAll('.time .cursor')].some((line) => !line.hidden)", 10):
        return ["the line doesn't follow the pointer"]
    seen = tab.evaluate(HOVER)
    faults = []
    if seen["lines"] != seen["panels"]:
        faults.append(f"{seen['lines']} of {seen['panels']} panels have the line")
    if not seen["values"]:
        faults.append("no panel shows a value at the line")
    faults += [f"the shares at the line are {whole:.1f} % together" for whole in seen["stack"]
               if not 99.5 <= whole <= 100.5]
    return faults


def check_units(tab):
    """The button that changes bits to bytes, and back."""
    texts = "document.querySelector('main').innerText"
    if tab.evaluate("document.getElementById('units').hidden"):
        return []
    before = tab.evaluate(texts)
    tab.evaluate("document.getElementById('units').click()")
    after = tab.evaluate(texts)
    tab.evaluate("document.getElementById('units').click()")
    faults = []
    if "bit/s" not in before or "B/s" not in after:
        faults.append("the button doesn't change bits to bytes")
    if tab.evaluate(texts) != before:
        faults.append("the button doesn't change bytes back to bits")
    return faults


def check_saved(tab):
    """The document that the button saves, as the page unpacks it."""
    if not tab.evaluate("!!document.getElementById('save')"):
        return []
    unpacked = """(async () => {
      const bytes = Uint8Array.from(atob(document.getElementById("document").textContent), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      JSON.parse(await new Response(stream).text());
      return true;
    })()"""
    return [] if tab.evaluate(unpacked) is True else ["the document can't be read in the page"]


def check_page(tab, name, address, directory, may_ask, parts=()):
    """Opens a page in all its looks; what is wrong with it, and which of the parts it lacks."""
    faults = []
    for width, scheme, media in ((1280, "light", ""), (1280, "dark", ""), (390, "light", ""), (794, "light", "print")):
        tab.resize(width)
        tab.look(scheme, media)
        tab.open(address)
        look = f"{width}-{media or scheme}"
        faults += [f"{look}: {fault}" for fault in tab.evaluate(LAYOUT)]
        if media == "":
            faults += [f"{look}: has no {part}" for part in parts if not tab.evaluate(PARTS[part])]
            done = check_hover(tab) + check_units(tab) + check_saved(tab)
            faults += [f"{look}: {fault}" for fault in done]
        tab.picture(f"{directory}/{name}-{look}.png")
        faults += [f"{look}: {fault}" for fault in tab.faults(may_ask)]
    return faults
