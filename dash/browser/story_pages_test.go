package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/falldue/falldue/dash"
)

// pictures is a folder that gets a picture of each page in both themes and two widths: go test -run
// TestStory -pictures FOLDER.
var pictures = flag.String("pictures", "", "folder for pictures of all pages")

// only selects pages by the names of their pictures.
var only = flag.String("only", "", "names of pages, separated by commas")

func everything(context.Context, dash.User, dash.Action, dash.Target) bool { return true }

// faults returns what does not fit on a page: a sideways scroll, and texts that leave their box or overlap.
const faults = `(() => {
  const list = [];
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) list.push('the page is ' + root.scrollWidth + ' pixels wide');
  for (const el of document.querySelectorAll('button, .button, .chip')) {
    const box = el.getBoundingClientRect();
    if (box.width && (box.height < 24 || box.width < 24)) list.push('a target of ' + Math.round(box.width) + ' x ' + Math.round(box.height) + ': ' + el.textContent.slice(0, 30));
    if (el.scrollWidth > el.clientWidth + 1) list.push('a text leaves ' + el.textContent.slice(0, 40));
  }
  for (const el of document.querySelectorAll('td, th, dd, dt, h1, h2, p, li')) {
    if (el.closest('.scroll, .hidden, pre, details:not([open])')) continue;
    const box = el.getBoundingClientRect();
    if (box.width && (box.right > innerWidth + 1 || el.scrollWidth > el.clientWidth + 2 && getComputedStyle(el).overflowX === 'visible' && getComputedStyle(el).display !== 'inline')) list.push('no room: ' + el.textContent.trim().slice(0, 40));
  }
  return list.slice(0, 5);
})()`

// violations runs axe-core on a page.
const violations = `axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then((r) =>
  r.violations.map((v) => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')).join(' | ')))`

// TestStory: each page of a shop in trouble fits at three widths in both themes, axe-core finds no fault in it, and the
// browser reports none.
func TestStory(t *testing.T) {
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("axe-core is missing; \"npm --prefix dash/browser ci\" installs it, as \"make pictures\" does: %v", err)
	}
	s := newStory(t, dash.Options{Title: "shop", Badge: "production", Allow: everything})
	tab, reported := browse(t)
	paths := s.paths()
	for _, name := range append(sortedKeys(paths), "ramp") {
		if name == "ramp" {
			s.ramp(t)
			paths[name] = "policy?subject=kind%3Awebhook.send"
		}
		if *only != "" && !slices.Contains(strings.Split(*only, ","), name) {
			continue
		}
		s.announce(t)
		steps := []chromedp.Action{chromedp.Navigate(s.url + paths[name]), chromedp.Evaluate(string(axe), nil)}
		if name == "ramp" { // the pages share reads, which may be older than the ramp
			steps = append(steps, chromedp.Poll(`document.body.innerText.includes('Applied on 2 of 3 workers')`, nil))
		}
		if err := chromedp.Run(tab, steps...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, width := range []int64{1280, 768, 360} {
			for _, theme := range []string{"light", "dark"} {
				look := fmt.Sprintf("%s-%s-%d", name, theme, width)
				var bad, worse []string
				var picture []byte
				steps := []chromedp.Action{
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}),
					chromedp.EmulateViewport(width, 900), chromedp.Evaluate(faults, &bad),
				}
				if width == 1280 || width == 360 && theme == "light" { // a theme has the same colors at each width
					steps = append(steps, chromedp.Evaluate(violations, &worse, awaited))
				}
				if *pictures != "" && width != 768 {
					steps = append(steps, chromedp.FullScreenshot(&picture, 100))
				}
				if err := chromedp.Run(tab, steps...); err != nil {
					t.Fatalf("%s: %v", look, err)
				}
				for _, text := range slices.Concat(bad, worse) {
					t.Errorf("%s: %s", look, text)
				}
				if picture != nil {
					if err := os.WriteFile(filepath.Join(*pictures, look+".png"), picture, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	for _, text := range *reported {
		if !strings.Contains(text, "404") { // of the page that is not there
			t.Errorf("the browser reports: %s", text)
		}
	}
}

// awaited waits for the value of a promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

func sortedKeys(m map[string]string) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
