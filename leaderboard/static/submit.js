// The form of submit.html: sends a file to the board's API, and shows its state until it is entered or refused. The
// token stays in its field and is not stored.
"use strict";
(() => {
  const root = document.currentScript.getAttribute("src").replace(/static\/submit\.js$/, "") || "./";
  const api = new URL(root + "api/v1/submissions", location.href).href;
  const by = (id) => document.getElementById(id);
  const form = by("upload"), file = by("file"), token = by("token"), zone = by("drop"), send = by("send"), stop = by("stop");
  const state = by("state"), said = by("said"), bar = by("bar"), problems = by("problems"), lines = by("lines");
  const LAST = ["entered", "refused", "failed"];
  let sending = null, watching = 0;

  if (!location.protocol.startsWith("http")) return byHand("These pages were opened as files, so there is no server to accept a submission.");
  form.hidden = false;

  function tell(text, kind = "") {
    state.hidden = false;
    state.className = "state " + kind;
    if (said.textContent !== text) said.textContent = text;
  }

  function byHand(why) {
    form.hidden = true;
    by("by-hand").hidden = false;
    by("why").textContent = why;
  }

  function list(found) {
    problems.hidden = !found.length;
    lines.replaceChildren(...found.map((one) => {
      const line = document.createElement("li");
      const place = [one.file, one.column && (one.file.endsWith(".parquet") ? "column " : "key ") + one.column, one.row && "row " + one.row].filter(Boolean).join(", ");
      const strong = document.createElement("strong"), name = document.createElement("code"), remedy = document.createElement("em");
      strong.textContent = place;
      name.textContent = one.name;
      remedy.textContent = one.remedy;
      line.append(strong, ": ", one.what, " (", name, "). ", remedy, ".");
      return line;
    }));
  }

  function links(entries) {
    by("entries").replaceChildren(...(entries || []).filter((one) => /^[0-9a-f]{16}$/.test(one)).map((one) => {
      const line = document.createElement("li"), link = document.createElement("a");
      link.href = root + "entries/" + one + ".html";
      link.textContent = "Entry " + one;
      line.append(link);
      return line;
    }));
  }

  function read(text) {
    try {
      const found = JSON.parse(text);
      return found && typeof found === "object" ? found : {};
    } catch {
      return {};
    }
  }

  function busy(on) {
    send.disabled = on;
    stop.hidden = !on;
    bar.hidden = !on;
    form.setAttribute("aria-busy", String(on));
  }

  const heads = () => (token.value.trim() ? { Authorization: "Bearer " + token.value.trim() } : {});

  async function digest(blob) {
    if (!crypto.subtle) return {}; // without TLS browsers have no crypto.subtle; the server computes the digest
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", await blob.arrayBuffer()));
    return { "Content-Digest": "sha-256=:" + btoa(String.fromCharCode(...sum)) + ":" };
  }

  async function upload() {
    const blob = file.files[0];
    list([]);
    links([]);
    watching++;
    if (!blob) {
      tell("Choose a file first: a submission.zip from farshift pack.", "bad");
      return file.focus();
    }
    busy(true);
    bar.removeAttribute("value");
    tell("Sending " + blob.name + ", " + blob.size.toLocaleString("en") + " bytes.");
    const request = (sending = new XMLHttpRequest());
    request.open("POST", api);
    const given = { "Content-Type": "application/zip", ...heads(), ...(await digest(blob)) };
    for (const [name, value] of Object.entries(given)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) bar.value = event.loaded / event.total;
    };
    request.upload.onload = () => tell("Sent. Waiting for the board's response.");
    request.onabort = () => finish("Stopped: nothing was submitted.", "bad");
    request.onerror = () => finish("The board could not be reached. You can safely send the file again: it is entered only once.", "bad");
    request.onload = () => answered(request.status, read(request.responseText), request.getResponseHeader("Retry-After"));
    request.send(blob);
  }

  function finish(text, kind) {
    sending = null;
    busy(false);
    tell(text, kind);
  }

  function answered(status, body, after) {
    sending = null;
    if (status === 202 && body.id) {
      busy(false);
      keep(body.id);
      return show(body);
    }
    busy(false);
    if (status === 200 || status === 201) return show({ state: "entered", ...body });
    if (status === 404 || status === 405 || status === 501) return byHand("These pages are a copy of the board, without its server.");
    list(body.problems || []);
    if (status === 401 || status === 403) token.focus();
    const wait = after ? " Try again in " + after + " seconds." : "";
    tell((body.error || body.reason || body.detail || "The board returned status " + status + ".") + wait, "bad");
    if ((body.problems || []).length) problems.querySelector("h3").focus();
  }

  const words = {
    queued: (body) => "Received and stored. Waiting to be scored" + (body.position ? ": number " + body.position + " in the queue." : "."),
    running: () => "Being checked and scored.",
    entered: (body) => (body.new === false ? "This file was already entered." : "Entered."),
    refused: (body) => "Refused" + (body.reason ? ": " + body.reason : ": the submission is not valid."),
    failed: (body) => "Scoring failed" + (body.reason ? ": " + body.reason : "."),
  };

  function show(body) {
    const known = words[body.state];
    tell(known ? known(body) : "State: " + body.state, body.state === "entered" ? "good" : LAST.includes(body.state) && "bad");
    list(body.problems || []);
    links(body.entries);
    if (body.id && !LAST.includes(body.state)) watch(body.id);
  }

  function keep(id) {
    const here = new URL(location.href);
    here.searchParams.set("submission", id);
    history.replaceState(null, "", here);
  }

  async function watch(id, pause = 700) {
    const mine = ++watching;
    for (let wait = pause; ; wait = Math.min(5000, wait * 1.3)) {
      await new Promise((done) => setTimeout(done, wait));
      if (mine !== watching) return;
      let answer;
      try {
        answer = await fetch(api + "/" + encodeURIComponent(id), { headers: heads(), cache: "no-store" });
      } catch {
        tell("The board cannot be reached now. Trying again.");
        continue;
      }
      if (mine !== watching) return;
      if (answer.status === 429 || answer.status >= 500) continue;
      const body = read(await answer.text());
      if (!answer.ok) {
        return tell(body.error || (answer.status === 401 ? "Enter the token that was used to submit it, and press Show state." : "The board has no submission " + id + "."), "bad");
      }
      if (LAST.includes(body.state)) return show(body);
      const known = words[body.state];
      tell(known ? known(body) : "State: " + body.state);
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    upload();
  });
  stop.addEventListener("click", () => sending && sending.abort());
  by("look").addEventListener("click", () => {
    const id = new URL(location.href).searchParams.get("submission");
    id ? watch(id, 0) : tell("Nothing was submitted from this page yet.");
  });
  for (const name of ["dragenter", "dragover"]) {
    zone.addEventListener(name, (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
  }
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    if (!event.dataTransfer.files.length) return;
    file.files = event.dataTransfer.files;
    file.dispatchEvent(new Event("change"));
  });
  file.addEventListener("change", () => file.files[0] && tell(file.files[0].name + " is selected."));
  const earlier = new URL(location.href).searchParams.get("submission");
  if (earlier) watch(earlier, 0);
})();
