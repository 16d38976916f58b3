// What a keyboard needs and the theme leaves out: a block that scrolls sideways can be
// reached with Tab, and so can the button that opens the contents.
(() => {
  const areas = ".md-typeset :is(pre > code, pre, .md-typeset__scrollwrap, .figure-scroll, div.arithmatex)";
  // (What only sticks out, as a copy button beside its block does, is not scrolled.)
  const scrolls = (area) =>
    area.scrollWidth > area.clientWidth && getComputedStyle(area).overflowX !== "visible";
  const mark = () => {
    for (const area of document.querySelectorAll(areas)) {
      if (scrolls(area)) area.tabIndex = 0;
      else if (area.tabIndex === 0) area.removeAttribute("tabindex");
    }
  };
  for (const label of document.querySelectorAll(".md-header__button[for^=__]")) {
    if (label.getAttribute("for").startsWith("__palette")) continue; // a radio button is there
    label.tabIndex = 0;
    // As attributes: older browsers do not know these as properties.
    label.setAttribute("role", "button");
    const name = label.getAttribute("for") === "__drawer" ? "Contents" : "Search";
    label.setAttribute("aria-label", name);
    label.addEventListener("keydown", (event) => {
      if (event.key !== " ") return; // the theme itself listens to Enter
      event.preventDefault();
      label.click();
    });
  }
  addEventListener("load", mark);
  addEventListener("resize", mark);
  document.fonts?.ready.then(mark);
})();
