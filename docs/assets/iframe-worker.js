// Search without a server: browsers refuse workers to pages opened from disk, so a hidden frame runs the script instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const scope = frame.contentWindow;
      const run = (source) => new Promise((resolve, reject) => {
        const script = scope.document.createElement("script");
        Object.assign(script, { src: new URL(source, document.baseURI).href, onload: resolve, onerror: reject });
        scope.document.body.append(script);
      });
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      scope.importScripts = (...sources) => sources.reduce((last, source) => last.then(() => run(source)), Promise.resolve());
      this.ready = run(url);
      this.scope = scope;
    }
    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
