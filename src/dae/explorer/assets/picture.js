// The state as a picture: a grid of coloured cells, or images that are decoded when they are needed.
import { bytesOf } from "./data.js";

const MOST_DECODED = 240; // images that are kept; more would fill the memory of a phone

export function makePicture(canvas) {
  const drawing = canvas.getContext("2d");
  let picture = null;
  let colours = [];
  let pixels = null;
  let decoded = new Map(); // image → promise of its bitmap, the one that was asked for last at the end
  let wanted = -1;

  function load({ episode }) {
    picture = episode.picture;
    for (const bitmap of decoded.values()) bitmap.then((image) => image?.close());
    decoded = new Map();
    canvas.parentElement.hidden = !picture;
    if (!picture) return;
    [canvas.width, canvas.height] = picture.size;
    if (picture.type === "grid") {
      pixels = drawing.createImageData(...picture.size);
      // Little-endian: the last two digits are the alpha channel, the first two after it blue.
      colours = picture.palette.map((colour) => {
        const number = parseInt(colour.slice(1), 16);
        return (0xff000000 | ((number & 0xff) << 16) | (number & 0xff00) | (number >> 16)) >>> 0;
      });
    }
    fit();
  }

  /** The largest size that fits; every cell of a grid has a whole number of the screen's pixels. */
  function fit() {
    if (!picture) return;
    const [width, height] = picture.size;
    const density = window.devicePixelRatio || 1;
    const room = canvas.parentElement.getBoundingClientRect().width;
    const tallest = Math.min(420, Math.max(200, window.innerHeight * 0.36));
    const scale = Math.min((room * density) / width, (tallest * density) / height);
    const snapped = picture.type === "grid" && scale >= 1 ? Math.floor(scale) : scale;
    canvas.style.width = `${(snapped * width) / density}px`;
    canvas.style.height = `${(snapped * height) / density}px`;
    canvas.classList.toggle("crisp", picture.type === "grid" || scale >= 2);
  }

  function show(step) {
    if (!picture) return;
    if (picture.type === "grid") showCells(Math.min(step, picture.frames - 1));
    else showImage(picture.index[Math.min(step, picture.index.length - 1)]);
  }

  function showCells(frame) {
    const [width, height] = picture.size;
    const target = new Uint32Array(pixels.data.buffer);
    for (let k = 0, cell = frame * width * height; k < target.length; k += 1, cell += 1) {
      target[k] = colours[picture.cells[cell]] ?? 0;
    }
    drawing.putImageData(pixels, 0, 0);
  }

  function showImage(number) {
    wanted = number;
    const from = picture;
    let bitmap = decoded.get(number);
    decoded.delete(number);
    // An image that the browser cannot read leaves the last one in its place.
    bitmap ??= createImageBitmap(new Blob([bytesOf(picture.images[number])], { type: picture.kind })).catch(() => null);
    decoded.set(number, bitmap);
    if (decoded.size > MOST_DECODED) {
      const [oldest] = decoded.keys();
      decoded.get(oldest).then((image) => image?.close());
      decoded.delete(oldest);
    }
    bitmap.then((image) => {
      if (image && wanted === number && from === picture) drawing.drawImage(image, 0, 0, canvas.width, canvas.height);
    });
  }

  return { load, show, fit };
}
