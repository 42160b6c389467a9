package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/demo"
)

// prefix begins the names of falldue's tables.
const prefix = "outage_"

// order has the arguments of a task. They are stored as JSON.
type order struct {
	Number int `json:"number"`
}

// newWebhook returns the kind of the deliveries to the partner. They are retried after eight seconds, as often as
// necessary. A kind is usually a package variable. This one depends on the length of a second.
func newWebhook(second time.Duration) falldue.Kind[order] {
	return falldue.NewKind[order]("webhook.deliver", falldue.KindConfig{Policy: backoff.Constant(8 * second)})
}

// mail is the kind of the mails to customers. If its worker dies, a mail does not wait for its policy's delay.
var mail = falldue.NewKind[order]("order.mail", falldue.KindConfig{ImmediateLostRetries: 3})

// newQueue returns the queue. A worker has a name.
func newQueue(db *sqlx.DB, name string) (*falldue.Queue, error) {
	return falldue.New(db, falldue.Config{
		Prefix: prefix, Name: name, Concurrency: 200,
		Lease: 3 * time.Second, // how long the tasks of a dead worker wait for another worker
	})
}

// sender handles the tasks.
type sender struct {
	client      *http.Client
	url, worker string
}

func (s *sender) deliver(ctx context.Context, t falldue.Task[order]) error {
	return s.post(ctx, pathWebhook, t)
}

func (s *sender) mail(ctx context.Context, t falldue.Task[order]) error {
	return s.post(ctx, pathMail, t)
}

// post sends an order. If it returns an error, the task is retried when its policy says.
func (s *sender) post(ctx context.Context, path string, t falldue.Task[order]) error {
	body := fmt.Sprintf(`{"order": %d}`, t.Args.Number)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		return falldue.Discard(err) // another attempt would not help
	}
	req.Header.Set(headerID, strconv.FormatInt(t.ID, 10))
	req.Header.Set(headerWorker, s.worker)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 300 {
		return errors.New("the partner answers " + resp.Status)
	}
	return nil
}

// workerVariable is the environment variable that makes this program a worker. It has a workerConfig.
const workerVariable = "OUTAGE_WORKER"

type workerConfig struct {
	Name, DSN, World string
	Second           time.Duration
}

// work runs tasks until its standard input ends. The program that has started it closes that input to stop it, and the
// system closes it if that program dies.
func work() error {
	var cfg workerConfig
	if err := json.Unmarshal([]byte(os.Getenv(workerVariable)), &cfg); err != nil {
		return err
	}
	signal.Ignore(os.Interrupt) // Ctrl-C reaches all processes of a terminal
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	db, _, closeDB, err := demo.Open(ctx, cfg.DSN)
	if err != nil {
		return err
	}
	queue, err := newQueue(db, cfg.Name)
	if err != nil {
		return errors.Join(err, closeDB())
	}
	s := &sender{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}, url: cfg.World, worker: cfg.Name}
	falldue.Handle(queue, newWebhook(cfg.Second), s.deliver)
	falldue.Handle(queue, mail, s.mail)
	return errors.Join(queue.Run(ctx), closeDB())
}

// worker is a process that runs tasks.
type worker struct {
	name   string
	cmd    *exec.Cmd
	killed atomic.Bool
	ended  chan struct{} // closed when the process has ended
}

// startWorker starts this program again, as a worker that stops when ctx ends. If the process ends by itself, fail is
// called with its log. Otherwise the log is not shown, since its lines would break the screen.
func startWorker(ctx context.Context, cfg workerConfig, fail func(error)) (*worker, error) {
	text, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, program) //nolint:gosec // the path of this program
	w := &worker{name: cfg.Name, cmd: cmd, ended: make(chan struct{})}
	w.cmd.Env, w.cmd.Stderr = append(os.Environ(), workerVariable+"="+string(text)), &log
	input, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	w.cmd.Cancel = input.Close
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.ended)
		if err := w.cmd.Wait(); !w.killed.Load() {
			fail(fmt.Errorf("%s has ended: %w\n%s", cfg.Name, err, &log))
		}
	}()
	return w, nil
}

// kill ends the process without a warning, by SIGKILL.
func (w *worker) kill() {
	w.killed.Store(true)
	_ = w.cmd.Process.Kill()
	<-w.ended
}
