// What is asked of a page from inside. Each check gives a list of faults, in words.
window.checks = (() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const short = (text, length = 100) => text.trim().replace(/\s+/g, " ").slice(0, length);

  // Elements that stick out at the right, unless something around them scrolls or clips.
  const sideways = () => {
    const room = document.documentElement.clientWidth;
    const needed = document.documentElement.scrollWidth;
    if (needed <= room) return [];
    const clipped = (element) => {
      for (let a = element.parentElement; a && a !== document.body; a = a.parentElement)
        if (getComputedStyle(a).overflowX !== "visible") return true;
      return false;
    };
    const end = (e) => {
      const { left, right } = e.getBoundingClientRect();
      const spills = getComputedStyle(e).overflowX === "visible" && e.clientWidth > 0;
      return spills ? Math.max(right, left + e.scrollWidth) : right;
    };
    const wide = all("body *").filter((e) => end(e) > room + 1 && !clipped(e));
    const names = wide.slice(-3).map((e) => short(e.cloneNode(false).outerHTML));
    return [`horizontal scroll: ${needed} pixels wide in ${room}: ${names.join(", ")}`];
  };

  // Pictures in the text: a role that lets a name be read, and the name.
  const pictures = () => {
    const text = document.querySelector("article") || document.body;
    const own = (e) => e.querySelector(":scope > title")?.textContent;
    const name = (e) =>
      (e.getAttribute("aria-label") || e.getAttribute("alt") || own(e) || "").trim();
    const aside = (e) => e.closest("[aria-hidden=true], button, .katex, .md-icon, .twemoji");
    const roles = ["img", "group", "graphics-document"];
    const drawn = all("svg", text).filter(
      (e) => !aside(e) && !e.parentElement.closest("svg"));
    const images = all("img", text).filter((e) => !aside(e));
    return [
      ...drawn.filter((e) => !name(e) || !roles.includes(e.getAttribute("role")))
        .map((e) => `an SVG figure without a role or a name: ${short(e.outerHTML)}`),
      ...images.filter((e) => !name(e)).map((e) => `an image without words: ${e.src}`),
    ];
  };

  // Formulas that stayed source, or became an error.
  const formulas = () => [
    ...all(".arithmatex").filter((e) => !e.querySelector(".katex")),
    ...all(".katex-error, mjx-merror"),
  ].map((e) => `mathematics not set: ${short(e.textContent)}`);

  // axe-core with every fold open: what is serious or critical. The size of what is to be
  // hit, which WCAG 2.2 (AA) asks for, is off unless it is asked for.
  const access = async () => {
    for (const fold of all("details")) fold.open = true;
    const found = await axe.run(document, {
      resultTypes: ["violations"],
      rules: { "target-size": { enabled: true } },
    });
    return found.violations
      .filter((rule) => ["serious", "critical"].includes(rule.impact))
      .flatMap((rule) => rule.nodes.slice(0, 3).map((node) => {
        const why = [...node.any, ...node.all, ...node.none][0]?.message ?? rule.help;
        return `axe ${rule.id} (${rule.impact}): ${short(why, 160)}: ${short(node.html, 160)}`;
      }));
  };

  return { sideways, pictures, formulas, access };
})();
