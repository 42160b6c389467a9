package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dash"
	"github.com/falldue/falldue/ops"
)

// TestWalk: a person on call finds out that the partner is down, slows the kind down with the effect shown before, retries
// the dead at a rate, and has one task explained, by links and forms alone, with scripts and without.
func TestWalk(t *testing.T) {
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts ", scripts), func(t *testing.T) {
			s := newStory(t, dash.Options{Allow: everything})
			tab, reported := browse(t)
			var verdict, errors, weighed, policies, job, task, changes string
			click := func(text string) chromedp.Action {
				return chromedp.Click(fmt.Sprintf(`//main//*[(self::a or self::button) and normalize-space()=%q]`, text), chromedp.BySearch)
			}
			err := chromedp.Run(tab,
				emulation.SetScriptExecutionDisabled(!scripts),
				chromedp.Navigate(s.url), chromedp.Text("#verdict", &verdict),
				click("See the errors"), chromedp.WaitVisible("#groups"), chromedp.Text("#groups", &errors),
				chromedp.Navigate(s.url), click("Slow retries down"), chromedp.WaitVisible("#editor"),
				click("Show the effect on the backlog"), chromedp.WaitVisible("#weighed .effect"), chromedp.Text("#weighed", &weighed),
				chromedp.SendKeys(`#editor input[name=why]`, "the partner is down"), chromedp.Click(`#editor input[name=sure]`), click("Set it"),
				chromedp.WaitVisible(`//*[@role="status" and contains(., "The policy is set")]`, chromedp.BySearch), chromedp.Text("main", &policies),
				chromedp.Navigate(s.url), click("Retry them at a rate"), chromedp.SetValue(`input[name=rate]`, "20"), chromedp.SendKeys(`main input[name=why]`, "the partner is back"),
				click("Retry them"), chromedp.WaitVisible("#job"), chromedp.Text("#job", &job),
				chromedp.Navigate(s.url+"tasks?kind=webhook.send&phase=backing_off"), chromedp.Click("#tasks tbody a"),
				chromedp.WaitVisible("#why"), chromedp.Text("main", &task),
			)
			if err != nil {
				t.Fatal(err)
			}
			for name, c := range map[string]struct{ text, want string }{
				"verdict": {verdict, "webhook.send is failing"}, "since": {verdict, "Began"}, "errors": {errors, "503 Service"}, "weighed": {weighed, "become due later"},
				"policies": {policies, "4 * original"}, "job": {job, "at 20 a second"}, "task": {task, "Why it does not run now"}, "future": {task, "Attempt 11"},
			} {
				if !strings.Contains(c.text, c.want) {
					t.Errorf("%s lacks %q:\n%s", name, c.want, c.text)
				}
			}
			list, err := ops.New(s.queue).Overrides(t.Context())
			if err != nil || len(list) != 2 {
				t.Errorf("the overrides are %+v, error %v", list, err)
			}
			if err := chromedp.Run(tab, chromedp.Navigate(s.url+"changes"), chromedp.Text("main", &changes)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(changes, "the partner is down") {
				t.Errorf("the page of changes says\n%s", changes)
			}
			for _, text := range *reported {
				t.Errorf("the browser reports: %s", text)
			}
		})
	}
}

// TestPreviewWhileTyping: the page draws a policy while a user types it, and a refresh keeps that picture.
func TestPreviewWhileTyping(t *testing.T) {
	s := newStory(t, dash.Options{Allow: everything, Refresh: time.Second})
	tab, reported := browse(t)
	var drawn, later string
	err := chromedp.Run(tab, chromedp.Navigate(s.url+"policy?subject=kind:webhook.send"), chromedp.WaitVisible("#preview"),
		chromedp.SendKeys("#editor input[name=override]", "7m; attempts 9"),
		chromedp.Poll(`document.querySelector("#preview .mono").textContent.includes("delay 7m") && document.querySelector("#preview").textContent.includes("after 9 attempts")`, nil, chromedp.WithPollingTimeout(time.Minute)),
		chromedp.Text("#preview", &drawn),
		chromedp.Evaluate(`document.querySelector('#now .age').dataset.mark = '1'`, nil),
		chromedp.Poll(`!document.querySelector('#now .age').dataset.mark`, nil, chromedp.WithPollingTimeout(time.Minute)), // a refresh
		chromedp.Text("#preview", &later))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"typed": drawn, "after a refresh": later} {
		if !strings.Contains(text, "delay 7m") || !strings.Contains(text, "A task dies after 9 attempts") {
			t.Errorf("%s: the preview is\n%s", name, text)
		}
	}
	for _, text := range *reported {
		t.Errorf("the browser reports: %s", text)
	}
}

// TestRefreshKeepsPlace: a refresh that changes numbers keeps the focus, the selected text, open details and what
// somebody types.
func TestRefreshKeepsPlace(t *testing.T) {
	s := newStory(t, dash.Options{Allow: everything, Refresh: time.Second})
	tab, reported := browse(t)
	var place struct {
		Focus    string `json:"focus"`
		Selected string `json:"selected"`
		Open     bool   `json:"open"`
		Typed    string `json:"typed"`
		Row      bool   `json:"row"`
	}
	err := chromedp.Run(tab, chromedp.Navigate(s.url), chromedp.WaitVisible("#queues table"),
		chromedp.SendKeys("#q", "81"),
		chromedp.Evaluate(`
			document.querySelector('#rates details').open = true;
			window.row = document.querySelector('#queues tbody tr');
			document.querySelector('#queues tbody a').focus();
			getSelection().selectAllChildren(document.querySelector('#verdict .what'));
			window.before = document.querySelector('.tiles dd').textContent;
			true`, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kind("mail.send").EnqueueMany(t.Context(), s.queue, make([]args, 500), falldue.EnqueueOptions{Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	err = chromedp.Run(tab, chromedp.Poll(`document.querySelector('.tiles dd').textContent !== before`, nil, chromedp.WithPollingTimeout(2*time.Minute)),
		chromedp.Evaluate(`({focus: document.activeElement.textContent, selected: getSelection().toString(), open: document.querySelector('#rates details').open, typed: document.getElementById('q').value, row: row.isConnected})`, &place))
	if err != nil {
		t.Fatal(err)
	}
	if place.Focus != "default" || !strings.Contains(place.Selected, "webhook.send is failing") || !place.Open || place.Typed != "81" || !place.Row {
		t.Errorf("after a refresh the place is %+v", place)
	}
	for _, text := range *reported {
		t.Errorf("the browser reports: %s", text)
	}
}

// TestKeyboard: the keyboard goes to the content, to the search and to pages, and runs a task, and the focus is always in sight.
func TestKeyboard(t *testing.T) {
	s := newStory(t, dash.Options{Allow: everything})
	tab, reported := browse(t)
	var first, search, title, hidden string
	var unseen []string
	press := func(keys ...string) chromedp.Action { return chromedp.KeyEvent(strings.Join(keys, "")) }
	err := chromedp.Run(tab, chromedp.Navigate(s.url), chromedp.WaitVisible("#verdict"),
		press(kb.Tab), chromedp.Evaluate(`document.activeElement.textContent`, &first), press(kb.Enter),
		chromedp.Evaluate(`location.hash`, &hidden),
		press("/"), chromedp.Evaluate(`document.activeElement.id`, &search), chromedp.Evaluate(`document.activeElement.blur()`, nil),
		press("g", "f"), chromedp.WaitVisible("#groups"), chromedp.Title(&title),
		chromedp.Navigate(s.url+fmt.Sprint("task?id=", s.waits)), chromedp.WaitVisible("#task-actions"),
		chromedp.Focus(`#task-actions summary`), press(kb.Enter), chromedp.WaitVisible(`form[action=run] input[name=why]`),
		press(kb.Tab), press("by keyboard"), press(kb.Tab), press(kb.Enter),
		chromedp.WaitVisible(`//*[@role="status" and contains(., "due now")]`, chromedp.BySearch),
		chromedp.Navigate(s.url+"queues"), chromedp.WaitVisible("#queues"),
		chromedp.Evaluate(`(() => {
			const list = [];
			for (const el of document.querySelectorAll('a[href], button, input, select, textarea, summary')) {
				if (el.closest('details:not([open]) > :not(summary)') || el.hidden || el.type === 'hidden') continue;
				el.focus();
				const box = el.getBoundingClientRect(), bar = document.querySelector('.top').getBoundingClientRect();
				const style = getComputedStyle(el);
				if (document.activeElement !== el) list.push('no focus: ' + el.outerHTML.slice(0, 80));
				else if (box.bottom > innerHeight + 1 || box.top < -1 || !el.closest('.top') && !el.matches('.skip') && box.top < bar.bottom - 1) list.push('out of sight: ' + el.outerHTML.slice(0, 80));
			}
			return list;
		})()`, &unseen))
	if err != nil {
		t.Fatal(err)
	}
	if first != "Skip to the content" || hidden != "#main" || search != "q" || !strings.HasPrefix(title, "Failures") {
		t.Errorf("the keyboard led to %q, %q, %q and %q", first, hidden, search, title)
	}
	if task, err := s.queue.Task(t.Context(), s.waits); err != nil || task.State != falldue.StateSnoozed {
		t.Errorf("the task is %s, error %v", task.State, err)
	}
	for _, text := range append(unseen, *reported...) {
		t.Error(text)
	}
}

// TestOtherSitesInABrowser: a form on another site, which the browser sends by itself, changes nothing.
func TestOtherSitesInABrowser(t *testing.T) {
	url, waits, q := site(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method="post" action="%scancel"><input name="id" value="%d"></form><script>document.forms[0].submit()</script>`, url, waits)
	}))
	t.Cleanup(other.Close)
	tab, _ := browse(t)
	var text string
	err := chromedp.Run(tab, chromedp.Navigate(strings.Replace(other.URL, "127.0.0.1", "localhost", 1)), chromedp.WaitVisible("#error"), chromedp.Text("main", &text))
	if err != nil {
		t.Fatal(err)
	}
	if task, err := q.Task(t.Context(), waits); err != nil || task.State != falldue.StateOpen || !strings.Contains(text, "came from another site") {
		t.Errorf("the task is %s, error %v, and the page says %q", task.State, err, text)
	}
}
