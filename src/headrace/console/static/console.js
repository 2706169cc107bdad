// Brings the page up to date while it is looked at. Everything works without it.
"use strict";
(() => {
  const seconds = Number(document.body.dataset.refresh || 0);
  const live = document.getElementById("live");
  const STOPS = "a:not([tabindex='-1']), button, summary, [tabindex='0']";
  let tag = "";
  let waiting = false;

  const isBusy = () => {
    const at = document.activeElement;
    const selection = document.getSelection();
    return document.hidden
      || live.querySelector("input:checked")
      || (at && live.contains(at) && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName))
      || (selection && !selection.isCollapsed && live.contains(selection.anchorNode));
  };

  // The nth link or region with the focus has it again afterwards: rows may have moved, people have not.
  const focusPath = () => {
    const at = document.activeElement;
    if (!at || at === live || !live.contains(at)) return null;
    const every = [...live.querySelectorAll(STOPS)];
    return { href: at.getAttribute("href"), place: every.indexOf(at) };
  };
  const focusAgain = (was) => {
    if (!was) return;
    const every = [...live.querySelectorAll(STOPS)];
    const same = was.href && every.find((each) => each.getAttribute("href") === was.href);
    const found = same || every[was.place];
    if (found) found.focus({ preventScroll: true });
  };

  const swap = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("live");
    if (!fresh || isBusy()) return false;
    const was = focusPath();
    const scrolled = [...live.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    const unfolded = [...live.querySelectorAll("details[open]")].map((each) => each.id);
    live.replaceChildren(...fresh.childNodes);
    live.querySelectorAll("details").forEach((each) => { each.open = unfolded.includes(each.id); });
    live.querySelectorAll(".scroll").forEach((each, at) => { each.scrollLeft = scrolled[at] || 0; });
    focusAgain(was);
    return true;
  };

  const refresh = async (address) => {
    if (waiting || isBusy()) return;
    waiting = true;
    try {
      const answer = await fetch(address, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
      if (answer.status !== 304 && swap(await answer.text())) tag = answer.headers.get("ETag") || "";
    } catch { /* the console has stopped; what is shown says of when it is */ } finally { waiting = false; }
  };

  // A search that is not at its end goes on by itself, until somebody stops it.
  const goOn = async () => {
    const next = document.querySelector("a[data-go-on]");
    if (!next || document.body.dataset.stopped) return;
    try {
      const answer = await fetch(next.href, { cache: "no-store" });
      if (document.body.dataset.stopped) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      if (!fresh) return;
      live.replaceChildren(...fresh.childNodes);
      history.replaceState(null, "", next.href);
      goOn();
    } catch { /* the link is still there */ }
  };
  document.addEventListener("click", (event) => {
    const stop = event.target.closest && event.target.closest("a[data-stop]");
    if (stop) { event.preventDefault(); document.body.dataset.stopped = "1"; stop.textContent = "Stopped"; }
  });

  // What comes into a topic, while the page is looked at and nobody has paused it.
  const MOST_ROWS = 200;
  const follow = (place) => {
    const rows = document.querySelector("section.rows");
    const button = place.querySelector(".pause");
    const address = new URL(place.dataset.tail, location.href);
    let source = null;
    let paused = false;
    let failing = 0;
    let since = "";
    let came = 0;
    let passed = 0;

    const say = (text) => {
      const said = place.querySelector(".said");
      clearTimeout(failing);
      if (said.textContent !== text) said.textContent = text;
    };
    const number = (value) => value.toLocaleString("en-US");
    const count = () => {
      const more = passed ? `, and ${number(passed)} that are not shown: more came than 20 in a second` : "";
      place.querySelector(".counted").textContent = came || passed ? `${number(came)} shown${more}` : "";
    };
    const stop = () => { if (source) source.close(); source = null; };
    const pause = (text) => {
      stop();
      paused = true;
      button.textContent = "Go on";
      say(text);
    };
    const show = (event) => {
      const turn = JSON.parse(event.data);
      address.searchParams.set("after", event.lastEventId);
      since = "";
      say("Following");
      came += turn.rows;
      passed += turn.left_out + turn.too_large;
      count();
      if (!turn.rows) return;
      const fresh = new DOMParser().parseFromString(turn.html, "text/html");
      rows.querySelectorAll(":scope > p").forEach((each) => each.remove());
      rows.prepend(...fresh.querySelectorAll("article.record"));
      [...rows.children].slice(MOST_ROWS).forEach((each) => {
        if (!each.contains(document.activeElement)) each.remove();
      });
    };
    const start = () => {
      if (source || paused || document.hidden) return;
      source = new EventSource(address);
      source.onmessage = show;
      source.addEventListener("problem", (event) => {
        since = since || new Date().toISOString().slice(11, 19);
        say(`${JSON.parse(event.data).sentence} Nothing is known since ${since} UTC.`);
      });
      source.addEventListener("end", (event) => pause(JSON.parse(event.data).sentence));
      source.onerror = () => {
        if (source.readyState === EventSource.CLOSED) pause("The console tells no more. Reload the page to see why.");
        // A stream ends each minute and another one begins: that is nothing to tell of.
        else failing = setTimeout(() => say("The console does not answer."), 5000);
      };
    };
    button.addEventListener("click", () => {
      if (!paused) { pause("Paused"); return; }
      paused = false;
      button.textContent = "Pause";
      say("Following");
      start();
    });
    document.addEventListener("visibilitychange", () => { if (document.hidden) stop(); else start(); });
    addEventListener("pagehide", stop);
    addEventListener("pageshow", start);
    place.querySelector(".still").hidden = true;
    place.querySelector(".following").hidden = false;
    start();
  };

  const here = document.querySelector(".top nav [aria-current]");
  if (here) here.scrollIntoView({ block: "nearest", inline: "center" });
  const tail = document.querySelector("[data-tail]");
  if (tail) follow(tail);
  else if (document.querySelector("a[data-go-on]")) goOn();
  else if (seconds > 0) setInterval(() => refresh(location.href), seconds * 1000);
})();
