// The few things that the page does with elements. Text stays text: no name can become markup.

export const byId = (id) => document.getElementById(id);

/** Make an element; strings among its children become text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Change a text only where it differs, so that the browser has nothing to lay out again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Say which one of several is shown now; the attribute's empty value would mean none. */
export function setCurrent(element, current) {
  if (current === element.hasAttribute("aria-current")) return;
  if (current) element.setAttribute("aria-current", "true");
  else element.removeAttribute("aria-current");
}

/** A button whose text says what it does. */
export function textButton(text, action, attributes = {}) {
  const button = make("button", { type: "button", ...attributes }, text);
  button.addEventListener("click", action);
  return button;
}

/** Give a canvas the pixels of its place on the screen and return how to draw on it in CSS pixels. */
export function fitCanvas(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * density));
  canvas.height = Math.max(1, Math.round(height * density));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const drawing = canvas.getContext("2d");
  drawing.setTransform(density, 0, 0, density, 0, 0);
  return drawing;
}

/** The page's colours as they are now, in light or dark. */
export function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["card", "ink", "soft", "line", "gain", "loss", "luck", "link"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
