package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dash"
)

// dashboard has the flags of the command dash.
type dashboard struct {
	place
	policies     policyFlag
	listen       string
	allow, hosts []string
	userHeader   string
	trust        []string
	noAuth       bool
	hide         bool
	metrics      bool
	title, badge string
}

func dashCommand() *cobra.Command {
	var d dashboard
	cmd := &cobra.Command{
		Use:   "dash",
		Short: "Serve a web page about queues, tasks and policies",
		Long: "Serve a web page about problems, tasks with their past and future, failures by error,\n" +
			"and policies. The page changes nothing unless --allow lists the actions. Ctrl-C ends\n" +
			"the command.\n\n" +
			"The command listens only on this machine. To listen elsewhere, put it behind a proxy\n" +
			"that authenticates users, and set --user-header and --trust-proxy, or set --no-auth.\n\n" +
			"/health/livez and /health/readyz answer Kubernetes, and with --metrics,\n" +
			"/metrics answers Prometheus. Anyone who can connect to the --listen address can read these three.\n\n" + policyFlagHelp,
		Example: "  falldue dash\n" +
			"  falldue dash --allow retry,cancel,pause,set-policy",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			allowed, err := d.allowed()
			if err != nil {
				return err
			}
			trusted, err := d.proxies()
			if err != nil {
				return err
			}
			if err := d.check(); err != nil {
				return err
			}
			return d.queue(cmd.Context(), func(q *falldue.Queue) error { return d.serve(cmd, q, allowed, trusted) })
		},
	}
	d.flags(cmd)
	d.policies.flag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&d.listen, "listen", "127.0.0.1:8080", "address and port")
	flags.StringSliceVar(&d.allow, "allow", nil, "allowed actions: \"all\", or one or more of "+actionNames())
	flags.StringSliceVar(&d.hosts, "host", nil, "host names under which browsers may open the page, in addition to localhost and --listen")
	flags.StringVar(&d.userHeader, "user-header", "", "header in which a proxy passes the name of the user, such as X-Forwarded-User")
	flags.StringSliceVar(&d.trust, "trust-proxy", nil, "addresses of the proxies that may set --user-header, such as 10.0.0.0/8")
	flags.BoolVar(&d.noAuth, "no-auth", false, "let anyone who can connect to the --listen address use the page")
	flags.BoolVar(&d.hide, "hide-payloads", false, "hide payloads, results, metadata and errors")
	flags.BoolVar(&d.metrics, "metrics", false, "serve metrics of tasks, queues and schedules for Prometheus at /metrics")
	flags.StringVar(&d.title, "title", "falldue", "name in the heading")
	flags.StringVar(&d.badge, "badge", "", "word in a red box in the heading, such as production")
	return cmd
}

func actionNames() string {
	names := make([]string, 0, len(dash.Actions()))
	for _, a := range dash.Actions() {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

// allowed returns the actions that --allow lists.
func (d *dashboard) allowed() (list []dash.Action, err error) {
	list = []dash.Action{dash.View}
	if !d.hide {
		list = append(list, dash.ViewPayload)
	}
	for _, name := range d.allow {
		switch action := dash.Action(strings.TrimSpace(name)); {
		case action == "all":
			list = append(list, dash.Actions()...)
		case slices.Contains(dash.Actions(), action):
			list = append(list, action)
		default:
			return nil, mistake(fmt.Errorf("--allow %q: unknown action: use \"all\", or one or more of %s", name, actionNames()))
		}
	}
	return list, nil
}

// proxies returns the addresses of --trust-proxy.
func (d *dashboard) proxies() (list []netip.Prefix, err error) {
	for _, text := range d.trust {
		if !strings.Contains(text, "/") {
			if addr, err := netip.ParseAddr(text); err == nil {
				text = netip.PrefixFrom(addr, addr.BitLen()).String()
			}
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, mistake(fmt.Errorf("--trust-proxy %q: must be an address or a network such as 10.0.0.0/8", text))
		}
		list = append(list, prefix)
	}
	return list, nil
}

// check refuses to listen where anybody may connect, unless that is asked for.
func (d *dashboard) check() error {
	host, _, err := net.SplitHostPort(d.listen)
	if err != nil {
		return mistake(fmt.Errorf("--listen %q: must be an address and a port such as 127.0.0.1:8080", d.listen))
	}
	if (d.userHeader == "") != (len(d.trust) == 0) {
		return mistake(errors.New("--user-header and --trust-proxy: set both or neither"))
	}
	addr, err := netip.ParseAddr(host)
	local := host == "localhost" || err == nil && addr.IsLoopback()
	if !local && d.userHeader == "" && !d.noAuth {
		return mistake(fmt.Errorf("--listen %s can be reached from other machines; set --user-header and --trust-proxy, or --no-auth", d.listen))
	}
	return nil
}

// user returns who sends a request: whom a trusted proxy names.
func (d *dashboard) user(trusted []netip.Prefix) func(*http.Request) (dash.User, error) {
	if d.userHeader == "" {
		return nil
	}
	return func(r *http.Request) (dash.User, error) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		name := r.Header.Get(d.userHeader)
		if err != nil || name == "" || !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap()) }) {
			return dash.User{}, errors.New("Sign in through the proxy: it passes your name.") //nolint:revive,staticcheck // a sentence on a page
		}
		return dash.User{Name: name}, nil
	}
}

// onlyHosts answers only requests to the names of the page, so that no other site's name leads to
// it (DNS rebinding).
func (d *dashboard) onlyHosts(h http.Handler) http.Handler {
	listen, _, _ := net.SplitHostPort(d.listen)
	names := append([]string{"localhost", "127.0.0.1", "::1", listen}, d.hosts...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, strings.Trim(host, "[]")) }) {
			http.Error(w, fmt.Sprintf("The host name %q is not allowed. Restart the command with this name in --host.", host), http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// serve serves the page until the command is interrupted.
func (d *dashboard) serve(cmd *cobra.Command, q *falldue.Queue, allowed []dash.Action, trusted []netip.Prefix) (err error) {
	h, err := dash.New(q, dash.Options{
		User: d.user(trusted), Policies: d.policies.kinds, Title: d.title, Badge: d.badge,
		Allow: func(_ context.Context, _ dash.User, a dash.Action, _ dash.Target) bool {
			return slices.Contains(allowed, a)
		},
		Logger: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)),
	})
	if err != nil {
		return err
	}
	handler, err := d.machines(q, d.onlyHosts(h))
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", d.listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	may := "read-only"
	if len(d.allow) > 0 {
		may = "may " + strings.Join(d.allow, ", ")
	}
	_, printed := fmt.Fprintf(cmd.OutOrStdout(), "http://%s/ (%s)\n", listener.Addr(), may)
	select {
	case err = <-served:
	case <-cmd.Context().Done():
		err = cmd.Context().Err()
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), 10*time.Second)
	defer cancel()
	return errors.Join(cmp.Or(err, printed), server.Shutdown(ending), h.Close(ending))
}
