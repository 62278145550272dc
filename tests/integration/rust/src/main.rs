//! The official gRPC client on a lead: reads one JSON command a line, does it, answers one JSON line. It decides nothing.
//! The same commands are in scripts/lab/java/grpc/GrpcDriver.java. What the client lacks is Missing.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::{engine::general_purpose::STANDARD, Engine};
use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::error::ClientError;
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::{MessageBuilder, MessageView};
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};
use serde_json::{json, Value};

type Seen = Arc<Mutex<Vec<Value>>>;

struct Failure {
    kind: &'static str,
    text: String,
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        // It has names instead of numbers of codes, in its text.
        Failure { kind: "ClientError", text: format!("{error:?}") }
    }
}

fn missing(what: &str) -> Failure {
    Failure { kind: "Missing", text: format!("the client has no {what}") }
}

/// A simple consumer is told at each receive what it wants.
struct Simple {
    consumer: SimpleConsumer,
    topic: String,
    wanted: FilterExpression,
}

struct Driver {
    endpoint: String,
    is_tls: bool,
    producers: HashMap<String, Producer>,
    simples: HashMap<String, Simple>,
    held: HashMap<String, MessageView>,
    boxes: HashMap<String, Seen>,
}

fn text<'a>(c: &'a Value, name: &str) -> Option<&'a str> {
    c[name].as_str()
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn shown(message: &MessageView) -> Value {
    json!({
        "id": message.message_id(),
        "topic": message.topic(),
        "body": STANDARD.encode(message.body()),
        "tag": message.tag(),
        "keys": message.keys().join(" "),
        "group": message.message_group(),
        "times": message.delivery_attempt(),
        "born": message.born_timestamp() * 1000,
        "at": now_ms(),
        "properties": message.properties(),
    })
}

impl Driver {
    fn option(&self) -> ClientOption {
        let mut option = ClientOption::default();
        option.set_access_url(self.endpoint.clone());
        option.set_enable_tls(self.is_tls);
        option.set_timeout(Duration::from_secs(20));
        option
    }

    async fn producer(&mut self, c: &Value) -> Result<Value, Failure> {
        let name = text(c, "name").unwrap().to_string();
        let mut option = ProducerOption::default();
        option.set_topics(vec![text(c, "topic").unwrap()]);
        let asked: Seen = Default::default();
        self.boxes.insert(name.clone(), asked.clone());
        let mut producer = if c.get("checks").is_some() {
            let check = move |_: String, message: MessageView| {
                asked.lock().unwrap().push(shown(&message));
                match message.properties().get("checked").map(String::as_str) {
                    Some("COMMIT") => TransactionResolution::COMMIT,
                    Some("ROLLBACK") => TransactionResolution::ROLLBACK,
                    _ => TransactionResolution::UNKNOWN,
                }
            };
            Producer::new_transaction_producer(option, self.option(), Box::new(check))?
        } else {
            Producer::new(option, self.option())?
        };
        producer.start().await?;
        self.producers.insert(name, producer);
        Ok(Value::Null)
    }

    async fn send(&mut self, c: &Value) -> Result<Value, Failure> {
        let producer = &self.producers[text(c, "name").unwrap()];
        let body = STANDARD.decode(text(c, "body").unwrap()).unwrap();
        let topic = text(c, "topic").unwrap();
        let mut builder = MessageBuilder::builder().set_topic(topic).set_body(body);
        if let Some(tag) = text(c, "tag") {
            builder = builder.set_tag(tag);
        }
        if let Some(keys) = text(c, "keys") {
            builder = builder.set_keys(keys.split(' ').collect());
        }
        if let Some(group) = text(c, "group") {
            builder = builder.set_message_group(group);
        }
        if let Some(delay) = c["delayMs"].as_i64() {
            // It knows seconds only.
            builder = builder.set_delivery_timestamp((now_ms() + delay + 999) / 1000);
        }
        if let Some(properties) = c["properties"].as_object() {
            let all = properties.iter().map(|(k, v)| (k.clone(), v.as_str().unwrap().to_string()));
            builder = builder.set_properties(all.collect::<HashMap<String, String>>());
        }
        let id = if let Some(local) = text(c, "local") {
            let message = builder.enable_transaction().build()?;
            let transaction = producer.send_transaction_message(message).await?;
            let id = transaction.message_id().to_string();
            match local {
                "COMMIT" => transaction.commit().await?,
                "ROLLBACK" => transaction.rollback().await?,
                _ => (),
            }
            id
        } else {
            producer.send(builder.build()?).await?.message_id().to_string()
        };
        Ok(json!({"id": id, "handle": null}))
    }

    async fn simple(&mut self, c: &Value) -> Result<Value, Failure> {
        let topic = text(c, "topic").unwrap().to_string();
        let mut option = SimpleConsumerOption::default();
        option.set_consumer_group(text(c, "group").unwrap());
        option.set_topics(vec![topic.clone()]);
        // No time of polls: it would be the deadline of the call, too, so that an answer at its end would come too late.
        let mut consumer = SimpleConsumer::new(option, self.option())?;
        consumer.start().await?;
        let kind = if text(c, "kind") == Some("SQL92") { FilterType::Sql } else { FilterType::Tag };
        let wanted = FilterExpression::new(kind, text(c, "expression").unwrap_or("*"));
        self.simples.insert(text(c, "name").unwrap().to_string(), Simple { consumer, topic, wanted });
        Ok(Value::Null)
    }

    async fn receive(&mut self, c: &Value) -> Result<Value, Failure> {
        let simple = &self.simples[text(c, "name").unwrap()];
        let most = c["most"].as_i64().unwrap_or(16) as i32;
        let invisible = Duration::from_millis(c["invisibleMs"].as_u64().unwrap_or(15000));
        let found = simple.consumer.receive_with(&simple.topic, &simple.wanted, most, invisible).await?;
        let answer = found.iter().map(shown).collect();
        for message in found {
            self.held.insert(message.message_id().to_string(), message);
        }
        Ok(Value::Array(answer))
    }

    async fn ack(&mut self, c: &Value) -> Result<Value, Failure> {
        let message = &self.held[text(c, "id").unwrap()];
        self.simples[text(c, "name").unwrap()].consumer.ack(message).await?;
        Ok(Value::Null)
    }

    async fn received(&self, c: &Value) -> Result<Value, Failure> {
        let found = &self.boxes[text(c, "name").unwrap()];
        let end = Instant::now() + Duration::from_millis(c["timeoutMs"].as_u64().unwrap_or(0));
        let wanted = c["atLeast"].as_u64().unwrap_or(0) as usize;
        while found.lock().unwrap().len() < wanted && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let all = found.lock().unwrap().clone();
        Ok(Value::Array(all))
    }

    async fn stop(&mut self, c: &Value) -> Result<Value, Failure> {
        let name = text(c, "name").unwrap();
        if let Some(producer) = self.producers.remove(name) {
            producer.shutdown().await?;
        }
        if let Some(simple) = self.simples.remove(name) {
            simple.consumer.shutdown().await?;
        }
        Ok(Value::Null)
    }

    async fn carry_out(&mut self, c: &Value) -> Result<Value, Failure> {
        match text(c, "do").unwrap_or("") {
            "producer" => self.producer(c).await,
            "send" => self.send(c).await,
            "recall" => Err(missing("recall")),
            "push" => Err(missing("push consumer")),
            "received" => self.received(c).await,
            "simple" => self.simple(c).await,
            "receive" => self.receive(c).await,
            "ack" => self.ack(c).await,
            "invisible" => Err(missing("change of invisible time")),
            "stop" => self.stop(c).await,
            what => Err(Failure { kind: "Error", text: format!("no command: {what}") }),
        }
    }
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut driver = Driver {
        endpoint: words[1].clone(),
        is_tls: words.get(2).map(String::as_str) == Some("tls"),
        producers: HashMap::new(),
        simples: HashMap::new(),
        held: HashMap::new(),
        boxes: HashMap::new(),
    };
    for line in std::io::stdin().lock().lines() {
        let c: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = match driver.carry_out(&c).await {
            Ok(ok) => json!({"ok": ok}),
            Err(f) => json!({"error": f.kind, "code": 0, "text": f.text}),
        };
        println!("{answer}");
        std::io::stdout().flush().unwrap();
    }
}
