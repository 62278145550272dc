// The official gRPC client on a lead: reads one JSON command a line, does it, answers one JSON line. It decides nothing.
// The same commands are in scripts/lab/java/grpc/GrpcDriver.java. What a version of the client lacks is Missing.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

type command struct {
	Do, Name, Topic, Group, Expression, Kind, Tag, Keys, Local, Handle, ID string
	Body                                                                   []byte
	Checks                                                                 bool
	Attempts, Most, Fails, AtLeast                                         int32
	DelayMs, InvisibleMs, AwaitMs, TimeoutMs, Ms                           int64
	Properties                                                             map[string]string
}

type shown struct {
	ID         string            `json:"id"`
	Topic      string            `json:"topic"`
	Body       []byte            `json:"body"`
	Tag        *string           `json:"tag"`
	Keys       string            `json:"keys"`
	Group      *string           `json:"group"`
	Times      int32             `json:"times"`
	Born       int64             `json:"born"`
	At         int64             `json:"at"`
	Properties map[string]string `json:"properties"`
}

// What it has, by name.
var (
	producers = map[string]rocketmq.Producer{}
	simples   = map[string]rocketmq.SimpleConsumer{}
	stops     = map[string]func() error{}
	held      = map[string]*rocketmq.MessageView{}
	boxes     = map[string]*box{}
)

// What a listener or a checker was given.
type box struct {
	lock     sync.Mutex
	messages []shown
}

func (b *box) add(message *rocketmq.MessageView) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.messages = append(b.messages, show(message))
}

func (b *box) all() []shown {
	b.lock.Lock()
	defer b.lock.Unlock()
	return append([]shown{}, b.messages...)
}

func show(m *rocketmq.MessageView) shown {
	properties := m.GetProperties()
	if properties == nil {
		properties = map[string]string{}
	}
	born := int64(0)
	if at := m.GetBornTimestamp(); at != nil {
		born = at.UnixMilli()
	}
	return shown{m.GetMessageId(), m.GetTopic(), m.GetBody(), m.GetTag(), strings.Join(m.GetKeys(), " "), m.GetMessageGroup(),
		m.GetDeliveryAttempt(), born, time.Now().UnixMilli(), properties}
}

func otherwise(value, instead int64) int64 {
	if value == 0 {
		return instead
	}
	return value
}

func config(group string) *rocketmq.Config {
	return &rocketmq.Config{Endpoint: os.Args[1], ConsumerGroup: group, Credentials: &credentials.SessionCredentials{}}
}

func wanted(c command) map[string]*rocketmq.FilterExpression {
	kind, expression := rocketmq.TAG, c.Expression
	if c.Kind == "SQL92" {
		kind = rocketmq.SQL92
	}
	if expression == "" {
		expression = "*"
	}
	return map[string]*rocketmq.FilterExpression{c.Topic: rocketmq.NewFilterExpressionWithType(expression, kind)}
}

func producer(c command) (any, error) {
	asked := &box{}
	boxes[c.Name] = asked
	options := []rocketmq.ProducerOption{rocketmq.WithTopics(c.Topic), rocketmq.WithMaxAttempts(int32(otherwise(int64(c.Attempts), 3)))}
	if c.Checks {
		options = append(options, rocketmq.WithTransactionChecker(&rocketmq.TransactionChecker{
			Check: func(m *rocketmq.MessageView) rocketmq.TransactionResolution {
				asked.add(m)
				ends := map[string]rocketmq.TransactionResolution{"COMMIT": rocketmq.COMMIT, "ROLLBACK": rocketmq.ROLLBACK}
				return ends[m.GetProperties()["checked"]]
			},
		}))
	}
	made, err := rocketmq.NewProducer(config(""), options...)
	if err != nil {
		return nil, err
	}
	producers[c.Name], stops[c.Name] = made, made.GracefulStop
	return nil, made.Start()
}

func send(c command) (any, error) {
	message := &rocketmq.Message{Topic: c.Topic, Body: c.Body}
	if c.Tag != "" {
		message.SetTag(c.Tag)
	}
	if c.Keys != "" {
		message.SetKeys(strings.Split(c.Keys, " ")...)
	}
	if c.Group != "" {
		message.SetMessageGroup(c.Group)
	}
	if c.DelayMs != 0 {
		message.SetDelayTimestamp(time.Now().Add(time.Duration(c.DelayMs) * time.Millisecond))
	}
	for key, value := range c.Properties {
		message.AddProperty(key, value)
	}
	made := producers[c.Name]
	var receipts []*rocketmq.SendReceipt
	var err error
	if c.Local == "" {
		receipts, err = made.Send(context.Background(), message)
	} else {
		transaction := made.BeginTransaction()
		receipts, err = made.SendWithTransaction(context.Background(), message, transaction)
		if err == nil && c.Local == "COMMIT" {
			err = transaction.Commit()
		}
		if err == nil && c.Local == "ROLLBACK" {
			err = transaction.RollBack()
		}
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": receipts[0].MessageID, "handle": handleOf(receipts[0])}, nil
}

func simple(c command) (any, error) {
	await := time.Duration(otherwise(c.AwaitMs, 5000)) * time.Millisecond
	made, err := rocketmq.NewSimpleConsumer(config(c.Group), simpleOptions(await, wanted(c))...)
	if err != nil {
		return nil, err
	}
	simples[c.Name], stops[c.Name] = made, made.GracefulStop
	return nil, made.Start()
}

func receive(c command) (any, error) {
	invisible := time.Duration(otherwise(c.InvisibleMs, 15000)) * time.Millisecond
	most := int32(otherwise(int64(c.Most), 16))
	found, err := simples[c.Name].Receive(context.Background(), most, invisible)
	// This client raises an error where the others have an empty list.
	if status, is := rocketmq.AsErrRpcStatus(err); is && status.Code == int32(v2.Code_MESSAGE_NOT_FOUND) {
		return []shown{}, nil
	}
	answer := []shown{}
	for _, message := range found {
		held[message.GetMessageId()] = message
		answer = append(answer, show(message))
	}
	return answer, err
}

func received(c command) (any, error) {
	end := time.Now().Add(time.Duration(c.TimeoutMs) * time.Millisecond)
	for len(boxes[c.Name].all()) < int(c.AtLeast) && time.Now().Before(end) {
		time.Sleep(5 * time.Millisecond)
	}
	return boxes[c.Name].all(), nil
}

type missing struct{}

func (missing) Error() string { return "this version of the client has no such thing" }

func carryOut(c command) (any, error) {
	switch c.Do {
	case "producer":
		return producer(c)
	case "send":
		return send(c)
	case "recall":
		return recall(producers[c.Name], c)
	case "push":
		return push(c)
	case "received":
		return received(c)
	case "simple":
		return simple(c)
	case "receive":
		return receive(c)
	case "ack":
		return nil, simples[c.Name].Ack(context.Background(), held[c.ID])
	case "invisible":
		return nil, simples[c.Name].ChangeInvisibleDuration(held[c.ID], time.Duration(c.Ms)*time.Millisecond)
	case "stop":
		return nil, stops[c.Name]()
	}
	return nil, fmt.Errorf("no command: %s", c.Do)
}

func answered(line []byte) map[string]any {
	var c command
	err := json.Unmarshal(line, &c)
	if err == nil {
		var ok any
		if ok, err = carryOut(c); err == nil {
			return map[string]any{"ok": ok}
		}
	}
	if _, is := err.(missing); is {
		return map[string]any{"error": "Missing", "code": 0, "text": err.Error()}
	}
	code := int32(0)
	if status, is := rocketmq.AsErrRpcStatus(err); is {
		code = status.Code
	}
	return map[string]any{"error": fmt.Sprintf("%T", err), "code": code, "text": err.Error()}
}

func main() {
	out := os.Stdout
	os.Stdout = os.Stderr
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		answer, _ := json.Marshal(answered(in.Bytes()))
		fmt.Fprintf(out, "%s\n", answer)
	}
}
