// Renders the mathematics of a page with KaTeX, if it has any. A formula that KaTeX does
// not know is an error in the console, which the walk (tests/site) counts as a failure.
(() => {
  const formulas = document.querySelectorAll(".arithmatex");
  if (!formulas.length) return;
  const base = new URL("../vendor/katex/", document.currentScript.src);

  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("katex.min.css", base);
  document.head.append(style);

  const render = (element) => {
    const text = element.textContent.trim();
    const displayMode = text.startsWith("\\[");
    try {
      const source = text.slice(2, -2); // without \( \) or \[ \]
      katex.render(source, element, { displayMode, throwOnError: true, strict: "error" });
    } catch (error) {
      console.error(`KaTeX: ${error.message} in ${text}`);
    }
  };
  const script = document.createElement("script");
  script.src = new URL("katex.min.js", base);
  script.onload = () => formulas.forEach(render);
  document.head.append(script);
})();
