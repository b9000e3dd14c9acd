
"use strict";
// Both episodes share one clock, so that an episode that ended early is seen to wait.
(() => {
  const images = [...document.querySelectorAll("[data-replays] img")];
  const controls = document.querySelector(".controls");
  if (!images.length || !controls || !window.createImageBitmap) return;
  const button = controls.querySelector("[data-play]");
  const slider = controls.querySelector("[data-place]");
  const clock = controls.querySelector("[data-time]");

  const checksums = Uint32Array.from({ length: 256 }, (_, n) => {
    for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
    return n;
  });
  const part = (kind, data) => {
    const out = new Uint8Array(12 + data.length);
    const view = new DataView(out.buffer);
    view.setUint32(0, data.length);
    for (let i = 0; i < 4; i++) out[4 + i] = kind.charCodeAt(i);
    out.set(data, 8);
    let sum = -1;
    for (let i = 4; i < 8 + data.length; i++) sum = checksums[(sum ^ out[i]) & 255] ^ (sum >>> 8);
    view.setUint32(8 + data.length, ~sum);
    return out;
  };

  // An animated PNG keeps each frame's pixels whole, so a frame is a PNG again once it has a header.
  const framesOf = (source) => {
    const bytes = Uint8Array.from(atob(source.split(",")[1]), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const shared = [bytes.slice(0, 8)];
    const frames = [];
    for (let at = 8; at < bytes.length; ) {
      const length = view.getUint32(at);
      const kind = String.fromCharCode(...bytes.slice(at + 4, at + 8));
      const data = bytes.subarray(at + 8, at + 8 + length);
      if (kind === "fcTL") frames.push([]);
      else if (kind === "IDAT") frames[frames.length - 1].push(part("IDAT", data));
      else if (kind === "fdAT") frames[frames.length - 1].push(part("IDAT", data.subarray(4)));
      else if (kind !== "acTL" && kind !== "IEND") shared.push(bytes.slice(at, at + 12 + length));
      at += 12 + length;
    }
    const end = part("IEND", new Uint8Array(0));
    return frames.map((pixels) => new Blob([...shared, ...pixels, end], { type: "image/png" }));
  };

  const screens = images.map((image) => {
    const canvas = document.createElement("canvas");
    canvas.width = Number(image.getAttribute("width"));
    canvas.height = Number(image.getAttribute("height"));
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", image.alt);
    return { image, canvas, frames: framesOf(image.src), each: Number(image.dataset.milliseconds), shown: -1 };
  });
  const whole = Math.max(...screens.map((screen) => screen.frames.length * screen.each));
  const rest = 1200;
  let now = 0;
  let last = null;
  let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;

  const paint = (screen, frame) => {
    screen.shown = frame;
    return createImageBitmap(screen.frames[frame]).then((picture) => {
      if (screen.shown === frame) screen.canvas.getContext("2d").drawImage(picture, 0, 0);
      picture.close();
    });
  };
  const draw = () => {
    for (const screen of screens) {
      const frame = Math.min(screen.frames.length - 1, Math.floor(now / screen.each));
      if (frame !== screen.shown) paint(screen, frame);
    }
    slider.value = Math.min(1000, Math.round((now / whole) * 1000));
    clock.textContent = (Math.min(now, whole) / 1000).toFixed(1) + " s";
  };
  const tick = (time) => {
    if (!playing) return;
    if (last !== null) now += Math.min(100, time - last);
    last = time;
    if (now > whole + rest) now = 0;
    draw();
    requestAnimationFrame(tick);
  };
  const play = (wanted) => {
    playing = wanted;
    last = null;
    button.textContent = playing ? "Pause" : "Play";
    if (playing) requestAnimationFrame(tick);
  };

  button.addEventListener("click", () => {
    if (!playing && now >= whole) now = 0;
    play(!playing);
  });
  slider.addEventListener("input", () => {
    play(false);
    now = (slider.value / 1000) * whole;
    draw();
  });
  // The pictures that move by themselves stay until the first frame is there to take their place.
  Promise.all(screens.map((screen) => paint(screen, 0))).then(() => {
    for (const screen of screens) screen.image.closest("picture").replaceWith(screen.canvas);
    controls.hidden = false;
    draw();
    play(playing);
  });
})();
