package queuetest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// boxes is a codec that keeps data in a box labelled with its place, and opens no other box.
type boxes struct{ name string }

func (b boxes) Encode(p falldue.Place, data []byte) ([]byte, error) {
	if bytes.Contains(data, []byte("unspeakable")) {
		return nil, errFlaky
	}
	if bytes.Contains(data, []byte("garbled")) {
		return []byte("{"), nil
	}
	return json.Marshal(b.label(p) + base64.StdEncoding.EncodeToString(data))
}

func (b boxes) label(p falldue.Place) string {
	return fmt.Sprintf("%s/%s/%s/%d/", b.name, p.Kind, p.Column, p.TaskID)
}

func (b boxes) Decode(p falldue.Place, stored []byte) ([]byte, error) {
	var box string
	if json.Unmarshal(stored, &box) != nil {
		return stored, nil
	}
	data, ok := strings.CutPrefix(box, b.label(p))
	if !ok {
		return nil, fmt.Errorf("the box %.20q is not %q", box, b.name)
	}
	return base64.StdEncoding.DecodeString(data)
}

func (boxes) Hash([]byte) []byte { return nil }

var codecCases = []conformanceCase{
	inCallersTx("payloads and results are stored as the codec encodes them, and read as they were", func(t *testing.T, f *fixture) {
		cfg := falldue.Config{Codec: boxes{"red"}, DoneRetention: time.Hour}
		q, bare := f.queue(t, cfg), f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("boxed", falldue.KindConfig{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			return task.SetResult("result of " + task.Args.Text)
		})
		secret := noteArgs{Text: "secret"}
		plain := enqueue(t, bare, k, noteArgs{Text: "plain"}) // from before there was a codec
		ids := []int64{enqueue(t, q, k, secret)}
		tx, err := f.begin(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		inTx, err := k.EnqueueTx(t.Context(), q, tx.Tx, secret)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := listed(ops.New(q).TasksTx(t.Context(), tx.Tx, ops.Filter{}, ops.ListOptions{After: ids[0]})); err != nil || len(list) != 1 || string(list[0].Payload) != `{"text":"secret"}` {
			t.Errorf("the transaction sees %+v (error %v)", list, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		many := make([]noteArgs, 600) // by COPY, where there is one
		for i := range many {
			many[i] = secret
		}
		copied, err := k.EnqueueMany(t.Context(), q, many)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, inTx.ID, copied[0].ID, copied[len(copied)-1].ID)
		startWorker(t, q)
		waitForState(t, q, plain, falldue.StateDone)
		for _, id := range ids {
			info := waitForState(t, q, id, falldue.StateDone)
			if string(info.Payload) != `{"text":"secret"}` || string(info.Result) != `"result of secret"` || info.DecodeError != nil {
				t.Errorf("the task is %+v", info)
			}
			stored := readTask(t, bare, id)
			if p, r := string(stored.Payload), string(stored.Result); !strings.HasPrefix(p, `"red/boxed/payload/0/`) || !strings.HasPrefix(r, fmt.Sprintf(`"red/boxed/result/%d/`, id)) {
				t.Errorf("stored are %s and %s", p, r)
			}
		}
		if r, err := falldue.ResultOf[string](t.Context(), q, plain); err != nil || r != "result of plain" {
			t.Errorf("the result is %q (error %v)", r, err)
		}
	}),
	{"a payload that the codec cannot decode fails the attempt, and delays no other task", func(t *testing.T, f *fixture) {
		q, other := f.queue(t, falldue.Config{Codec: boxes{"red"}}), f.queue(t, falldue.Config{Codec: boxes{"blue"}})
		k := falldue.NewKind[noteArgs]("boxed", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 2")})
		ran := make(chan string, 10)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.Args.Text
			return nil
		})
		blue := enqueue(t, other, k, noteArgs{Text: "blue"})
		enqueue(t, q, k, noteArgs{Text: "red"})
		startWorker(t, q)
		if text := receive(t, ran, "the other task"); text != "red" {
			t.Errorf("the task %q ran", text)
		}
		info := waitForState(t, q, blue, falldue.StateDead)
		if !strings.Contains(info.LastError, `is not "red"`) || info.Attempts != 2 {
			t.Errorf("the task is %+v", info)
		}
		if info.DecodeError == nil || info.Payload != nil {
			t.Errorf("the payload %s is decoded (error %v)", info.Payload, info.DecodeError)
		}
		if _, err := falldue.ResultOf[string](t.Context(), q, blue); err == nil || errors.Is(err, falldue.ErrNoResult) {
			t.Errorf("its result: %v", err)
		}
		for text, want := range map[string]error{"unspeakable": errFlaky, "garbled": falldue.ErrInvalid} {
			if _, err := k.Enqueue(t.Context(), q, noteArgs{Text: text}); !errors.Is(err, want) {
				t.Errorf("a payload that the codec cannot encode: %v, want %v", err, want)
			}
		}
	}},
	{"a search in payloads counts the tasks whose payloads the codec cannot decode", func(t *testing.T, f *fixture) {
		q, other := f.queue(t, falldue.Config{Codec: boxes{"red"}}), f.queue(t, falldue.Config{Codec: boxes{"blue"}})
		k, more := falldue.NewKind[noteArgs]("boxed", falldue.KindConfig{}), falldue.NewKind[noteArgs]("more", falldue.KindConfig{})
		for _, kind := range []falldue.Kind[noteArgs]{k, more} {
			enqueue(t, other, kind, noteArgs{Text: "wanted"})
			enqueue(t, q, kind, noteArgs{Text: "other"})
			enqueue(t, other, kind, noteArgs{Text: "wanted"})
		}
		wanted := enqueue(t, q, k, noteArgs{Text: "wanted"})
		for filter, undecodable := range map[ops.Filter]int64{
			{Kind: "boxed", Match: "wanted"}:                              2,
			{Match: "wanted"}:                                             4,
			{Kind: "boxed", Match: "wanted", Phase: falldue.PhaseDue}:     2,
			{Kind: "boxed", Match: "wanted", Phase: falldue.PhaseRunning}: 0,
			{Kind: "boxed"}:                                               0,
		} {
			page, err := ops.New(q).Tasks(t.Context(), filter)
			if err != nil || page.Undecodable != undecodable {
				t.Errorf("Tasks with %+v could not decode %d tasks, error %v, want %d", filter, page.Undecodable, err, undecodable)
			}
			report, err := ops.New(q).CancelMany(t.Context(), filter, ops.BulkOptions{DryRun: true})
			if err != nil || report.Undecodable != undecodable || report.Changed != int64(len(page.Tasks)) || !report.Complete {
				t.Errorf("a dry run with %+v: %+v, error %v, want %d tasks that cannot be decoded", filter, report, err, undecodable)
			}
		}
		report, err := ops.New(q).CancelMany(t.Context(), ops.Filter{Kind: "boxed", Match: "wanted"})
		if err != nil || report.Changed != 1 || report.Undecodable != 2 {
			t.Errorf("a cancel: %+v, error %v, want one cancelled and two that cannot be decoded", report, err)
		}
		waitForState(t, q, wanted, falldue.StateCancelled)
	}},
}
