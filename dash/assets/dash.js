// The pages work without this script. It refreshes them, previews policies while the user types, and
// switches the theme.
const root = document.documentElement, body = document.body;
const store = {
  get(key) { try { return localStorage.getItem('falldue-' + key); } catch { return null; } },
  set(key, value) { try { localStorage.setItem('falldue-' + key, value); } catch { /* private mode */ } },
};

// Theme.
const theme = store.get('theme');
if (theme) root.dataset.theme = theme;
const themeButton = document.getElementById('theme');
if (themeButton) {
  themeButton.hidden = false;
  themeButton.addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    store.set('theme', root.dataset.theme);
  });
}

// morph makes an element like another one. Equal parts stay as they are: focus, selected text, the
// place of a scroll, open details.
function morph(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName || (old.id || '') !== (now.id || '')) {
    old.replaceWith(now);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  if (old.matches('form') && old.contains(document.activeElement)) return;
  for (const { name } of [...old.attributes]) {
    if (!now.hasAttribute(name) && !(name === 'open' && old.nodeName === 'DETAILS')) old.removeAttribute(name);
  }
  for (const { name, value } of now.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const from = [...now.childNodes];
  from.forEach((child, i) => {
    const place = old.childNodes[i];
    if (!place) { old.append(child); return; }
    const same = child.id && place.id !== child.id && [...old.children].find((c) => c.id === child.id);
    if (same) { old.insertBefore(same, place); morph(same, child); } else morph(place, child);
  });
  while (old.childNodes.length > from.length) old.lastChild.remove();
}

async function load(url, signal) {
  const answer = await fetch(url, { headers: { 'Falldue-Part': '1' }, signal, credentials: 'same-origin' });
  const parts = new DOMParser().parseFromString(await answer.text(), 'text/html');
  if (url !== location.href) return; // a preview has begun since
  const list = [...parts.querySelectorAll('section.region')];
  if (!list.length) throw new Error('no answer');
  for (const part of list) {
    const old = document.getElementById(part.id);
    if (old) morph(old, document.importNode(part, true));
    else if (part.id !== 'error') document.getElementById('main').append(document.importNode(part, true));
  }
  if (!answer.ok) throw new Error(String(answer.status));
  born = performance.now();
}

// Live refresh.
let born = performance.now(), paused = store.get('paused') === '1', failures = 0;
const every = Number(body.dataset.refresh) || 0;
const button = document.getElementById('refresh'), fresh = document.getElementById('fresh');

function busy() {
  return document.hidden || paused || document.querySelector('details.act[open]') !== null;
}

function show() {
  if (!button) return;
  button.setAttribute('aria-pressed', String(paused));
  fresh.textContent = paused ? 'paused' : failures ? 'no answer' : 'live';
  button.setAttribute('aria-label', fresh.textContent + (paused ? ': resume the refresh' : ': pause the refresh'));
}

async function tick() {
  if (!busy()) {
    try { await load(location.href, AbortSignal.timeout(10000)); failures = 0; } catch { failures++; }
    show();
  }
  setTimeout(tick, every * Math.min(1 + failures, 6));
}

function pause() {
  paused = !paused;
  store.set('paused', paused ? '1' : '0');
  show();
}

if (every) {
  button.hidden = false;
  button.addEventListener('click', pause);
  show();
  setTimeout(tick, every);
}

// Ages grow while nothing is read.
function span(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 1) return 'now';
  if (s < 60) return s + 's ago';
  if (s < 3600) return Math.floor(s / 60) + 'm' + (s % 60 ? s % 60 + 's' : '') + ' ago';
  return Math.floor(s / 3600) + 'h' + (Math.floor(s / 60) % 60 ? Math.floor(s / 60) % 60 + 'm' : '') + ' ago';
}
setInterval(() => {
  const since = performance.now() - born;
  for (const el of document.querySelectorAll('[data-age]')) {
    const age = Number(el.dataset.age) + since;
    el.textContent = span(age);
    el.classList.toggle('old', every > 0 && age > 60000);
  }
}, 1000);

// The editor of policies previews while the user types.
const editor = document.querySelector('form[data-preview]');
if (editor) {
  let timer, running;
  const preview = () => {
    running?.abort();
    running = new AbortController();
    const query = new URLSearchParams(new FormData(editor));
    query.delete('sure');
    history.replaceState(null, '', 'policy?' + query); // for the next refresh
    load(location.href, running.signal).catch(() => {});
    const weighed = document.getElementById('weighed');
    if (weighed) weighed.replaceChildren();
  };
  editor.addEventListener('input', (e) => {
    if (e.target.name === 'why' || e.target.name === 'sure') return;
    clearTimeout(timer);
    timer = setTimeout(preview, 250);
  });
}

// Keys.
const pages = { o: './', t: 'tasks', f: 'failures', q: 'queues', p: 'policies', s: 'schedules', w: 'workers', d: 'doctor' };
let going = false;
addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.nodeName)) return;
  if (going && pages[e.key]) location.href = pages[e.key];
  else if (e.key === '/') { e.preventDefault(); document.getElementById('q').focus(); }
  going = e.key === 'g';
});
