// Measures the texts of pictures, and sends the result to the server: of the SVG elements of
// the page, or of the files that its JSON names, each in a frame and as wide as asked for.
"use strict";

const blocked = [];
document.addEventListener("securitypolicyviolation", (e) => blocked.push(e.violatedDirective));

function measured(name, svg, view) {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")];
  const boxes = texts.map((text) => {
    const b = text.getBoundingClientRect();
    const scale = frame.width / svg.viewBox.baseVal.width;
    return {
      Text: text.firstChild.textContent,
      Left: b.left - frame.left, Top: b.top - frame.top, Right: b.right - frame.left, Bottom: b.bottom - frame.top,
      Font: parseFloat(view.getComputedStyle(text).fontSize) * scale,
    };
  });
  const paper = svg.querySelector("rect");
  const background = paper ? view.getComputedStyle(paper).fill : view.getComputedStyle(svg.ownerDocument.body).backgroundColor;
  const inked = texts.find((text) => text.classList.contains("chart-fink"));
  return { Name: name, Width: frame.width, Height: frame.height, Boxes: boxes, Colors: [background, inked ? view.getComputedStyle(inked).fill : ""], Blocked: blocked };
}

async function inFrame(look, fonts) {
  const frame = document.createElement("iframe");
  frame.width = look.Width;
  const loaded = new Promise((done) => frame.addEventListener("load", done));
  frame.src = look.URL;
  document.documentElement.append(frame);
  await loaded;
  try {
    const svg = frame.contentDocument.documentElement;
    if (!svg.viewBox) throw new Error("not an SVG: " + svg.textContent.slice(0, 200));
    const { width, height } = svg.viewBox.baseVal;
    svg.setAttribute("width", look.Width);
    svg.setAttribute("height", (height * look.Width) / width);
    const style = frame.contentDocument.createElementNS("http://www.w3.org/2000/svg", "style");
    svg.append(style);
    return fonts.map((font) => {
      style.textContent = font ? `text { font-family: "${font}" !important }` : "";
      return measured(look.Name + (font ? " in " + font : ""), svg, frame.contentWindow);
    });
  } catch (e) {
    return fonts.map(() => ({ Name: look.Name, Error: String(e) }));
  } finally {
    frame.remove();
  }
}

window.addEventListener("load", async () => {
  const page = document.getElementById("page");
  let result = [];
  if (page) {
    const { looks, fonts } = JSON.parse(page.textContent);
    for (const look of looks) result.push(...(await inFrame(look, fonts)));
  } else {
    result = [...document.querySelectorAll("svg")].map((svg) => {
      try {
        return measured(svg.getAttribute("aria-label"), svg, window);
      } catch (e) {
        return { Name: svg.getAttribute("aria-label"), Error: String(e) };
      }
    });
  }
  await fetch("/result", { method: "POST", body: JSON.stringify(result) });
});
