// The index of the search is fetched when somebody searches, not with every page. The
// theme asks for it at once, by XMLHttpRequest: that request waits here.
(() => {
  const wanted = new Promise((resolve) => {
    if (new URLSearchParams(location.search).has("q")) resolve();
    const isSearch = (event) => event.target.closest?.("[data-md-component=search]");
    addEventListener("focusin", (event) => isSearch(event) && resolve());
    addEventListener("change", (event) => event.target.id === "__search" && resolve());
  });
  const { open, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...more) {
    this.waits = String(url).endsWith("/search/search_index.json");
    return open.call(this, method, url, ...more);
  };
  XMLHttpRequest.prototype.send = function (body) {
    if (this.waits) wanted.then(() => send.call(this, body));
    else send.call(this, body);
  };
})();
