//! Writing documents to a server of OpenSearch or Elasticsearch, and reading them: what is asked, and what its answers
//! mean.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::document::Document;
use super::mapping::{creation, mapping, missing, type_of, without_unsigned};
use super::{CdmVersion, DocumentKind};
use crate::exchange::{Exchange, GivenUp, Reply, Request, send_patiently, wait};

/// Documents of one request.
const MOST_DOCUMENTS: usize = 4000;

/// Bytes of one request, a document more or less.
const MOST_BYTES: usize = 4 << 20;

/// Refused documents that are named.
const MOST_REFUSALS: usize = 100;

/// Documents of one answer.
const PAGE: usize = 10_000;

/// Names of one question.
pub(super) const IDS: usize = 1000;

/// What a server tells whose mappings can't have whole numbers without a sign: OpenSearch before 2.8, and Elasticsearch
/// before 7.10 or without its licensed part.
const LACKS_UNSIGNED: &str = "No handler for type [unsigned_long]";

/// The most documents that are kept for one question.
const MOST_FOUND: usize = 1_000_000;

/// The answers to one question whose documents are kept may have so many bytes together.
const MOST_FOUND_BYTES: usize = 256 << 20;

/// Why documents could not be written or read: a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The server can't be reached or is too busy. The same may succeed later.
    #[error("the index can't be reached: {0}")]
    Away(String),
    /// What answers is not trusted.
    #[error("the index is not trusted: {0}")]
    Untrusted(String),
    /// The server refuses what was asked.
    #[error("the index refuses {0}")]
    Refused(String),
    /// The server refuses this credential, or the lack of one.
    #[error("the index refuses {0}")]
    Denied(String),
    /// What answers is no such server, or not as it should be.
    #[error("the index answers what can't be understood: {0}")]
    Strange(String),
    /// An index of the name is there, and is none of the Common Data Model.
    #[error(
        "the index {name} can't take documents of the Common Data Model: {why}; remove it, or give another version with --cdm"
    )]
    Unfit {
        /// Its name.
        name: String,
        /// What differs.
        why: String,
    },
    /// The store failed.
    #[error("{0}")]
    Store(String),
    /// The wait was given up.
    #[error("interrupted; the index has not got all documents")]
    Interrupted,
}

impl IndexError {
    /// Whether whatever else is written now would fail in the same way.
    pub(super) fn is_for_all(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Untrusted(_) | Self::Denied(_) | Self::Interrupted)
    }
}

impl From<GivenUp> for IndexError {
    fn from(given_up: GivenUp) -> Self {
        match given_up {
            GivenUp::Away(why) => Self::Away(why),
            GivenUp::Untrusted(why) => Self::Untrusted(why),
            GivenUp::Interrupted => Self::Interrupted,
        }
    }
}

impl From<crate::StoreError> for IndexError {
    fn from(error: crate::StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

/// What became of the documents that were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// New ones.
    pub created: u64,
    /// Those that took the place of themselves.
    pub updated: u64,
    /// Those that the server refused for their content.
    pub refused: u64,
    /// The first of these, by index and name, with the server's reason.
    pub refusals: Vec<String>,
}

/// A server with documents of one version of the Common Data Model.
#[derive(Debug)]
pub struct Index<E> {
    exchange: E,
    version: CdmVersion,
    /// How often in a row the server may fail.
    tries: u32,
    /// When the run began whose documents are written, which tells the month of their indices.
    began_ms: i64,
    /// Indices that are known to be fit.
    fit: BTreeSet<String>,
    /// Whether the server lacks the type of numbers without a sign.
    lacks_unsigned: bool,
    waiting: Vec<Document>,
    waiting_bytes: usize,
    written: Written,
}

impl<E: Exchange> Index<E> {
    /// Asks a server what it is. The version is the one that is asked for, else the newest that the server has indices
    /// of, else the newest of all.
    ///
    /// # Errors
    /// Where no such server answers.
    pub fn open(exchange: E, asked: Option<CdmVersion>, tries: u32) -> Result<Self, IndexError> {
        let mut index = Self {
            exchange,
            version: asked.unwrap_or(CdmVersion::V10),
            tries,
            began_ms: 0,
            fit: BTreeSet::new(),
            lacks_unsigned: false,
            waiting: Vec::new(),
            waiting_bytes: 0,
            written: Written::default(),
        };
        let root = index.ask("GET", "/", "")?;
        if root["version"]["number"].as_str().is_none() {
            let why = "it is neither OpenSearch nor Elasticsearch";
            return Err(IndexError::Strange(why.to_owned()));
        }
        if asked.is_none() {
            let known = index.versions()?;
            index.version = known.first().copied().unwrap_or(CdmVersion::V10);
        }
        Ok(index)
    }

    /// The versions that the server has indices of, the newest first.
    ///
    /// # Errors
    /// Where the server fails.
    pub fn versions(&mut self) -> Result<Vec<CdmVersion>, IndexError> {
        let list = self.ask("GET", "/_cat/indices/cdm*?h=index&format=json", "")?;
        let names = list.as_array().into_iter().flatten();
        let versions: BTreeSet<CdmVersion> =
            names.filter_map(|row| CdmVersion::of_index(row["index"].as_str()?)).collect();
        Ok(versions.into_iter().rev().collect())
    }

    /// The version.
    pub fn version(&self) -> CdmVersion {
        self.version
    }

    /// Takes another version.
    pub fn set_version(&mut self, version: CdmVersion) {
        self.version = version;
    }

    /// The exchange.
    pub fn exchange(&mut self) -> &mut E {
        &mut self.exchange
    }

    /// Begins with the documents of a run that began then. Indices of all kinds are there afterwards.
    ///
    /// # Errors
    /// Where an index can't be made, or is there and unfit.
    pub fn begin(&mut self, began_ms: i64) -> Result<(), IndexError> {
        self.flush()?;
        self.began_ms = began_ms;
        DocumentKind::ALL.into_iter().try_for_each(|kind| self.make_index(kind))
    }

    /// Makes an index unless it is there. It is never left to a first document, for which the server would guess types.
    fn make_index(&mut self, kind: DocumentKind) -> Result<(), IndexError> {
        let name = self.version.index(kind, self.began_ms);
        if self.fit.contains(&name) {
            return Ok(());
        }
        let wanted = creation(kind, self.version);
        let reply = self.put_mapping(&format!("/{name}"), wanted.clone())?;
        match reply.status {
            200..=299 => {}
            _ if reply.body.contains("resource_already_exists_exception") => {
                self.complete(&name, &wanted["mappings"])?;
            }
            _ => return Err(refusal(&format!("to make the index {name}"), &reply)),
        }
        self.fit.insert(name);
        Ok(())
    }

    /// Adds the fields that an index lacks.
    fn complete(&mut self, name: &str, wanted: &Value) -> Result<(), IndexError> {
        let path = format!("/{name}/_mapping");
        let found = self.ask("GET", &path, "")?;
        // An alias has the name of the index behind it.
        let found = found.as_object().and_then(|all| all.values().next()).cloned();
        let found = found.unwrap_or_default();
        match missing(wanted, &found["mappings"]) {
            Ok(None) => Ok(()),
            Ok(Some(fields)) => {
                let reply = self.put_mapping(&path, fields)?;
                match reply.status {
                    200..=299 => Ok(()),
                    _ => Err(refusal(&format!("PUT {path}"), &reply)),
                }
            }
            Err(why) => Err(IndexError::Unfit { name: name.to_owned(), why }),
        }
    }

    /// Puts what has a mapping, with the types that the server has.
    fn put_mapping(&mut self, path: &str, mut content: Value) -> Result<Reply, IndexError> {
        if !self.lacks_unsigned {
            let reply = self.exchange_patiently("PUT", path, &content.to_string())?;
            if !reply.body.contains(LACKS_UNSIGNED) {
                return Ok(reply);
            }
            self.lacks_unsigned = true;
        }
        without_unsigned(&mut content);
        self.exchange_patiently("PUT", path, &content.to_string())
    }

    /// Writes a document, soon or with those that follow.
    ///
    /// # Errors
    /// Those of [`Self::flush`].
    pub fn put(&mut self, document: Document) -> Result<(), IndexError> {
        self.waiting_bytes += document.body.len() + document.id.len() + 100;
        self.waiting.push(document);
        if self.waiting.len() >= MOST_DOCUMENTS || self.waiting_bytes >= MOST_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes all documents that wait. Those that a busy server did not take are written again after a pause.
    ///
    /// # Errors
    /// Where the server fails too often in a row, or refuses all. What was written stays.
    pub fn flush(&mut self) -> Result<(), IndexError> {
        let mut batches = vec![std::mem::take(&mut self.waiting)];
        self.waiting_bytes = 0;
        let mut failures = 0;
        while let Some(batch) = batches.pop() {
            if batch.is_empty() {
                continue;
            }
            let reply = self.exchange_patiently("POST", "/_bulk", &self.lines(&batch))?;
            match reply.status {
                200..=299 => {
                    let whole = batch.len();
                    let (left, why) = self.read_items(batch, &reply)?;
                    if left.is_empty() {
                        failures = 0;
                        continue;
                    }
                    failures = if left.len() < whole { 1 } else { failures + 1 };
                    self.wait(failures, reply.retry_after, &why)?;
                    batches.push(left);
                }
                413 => self.split(batch, &reply, &mut batches),
                _ => return Err(refusal("a bulk of documents", &reply)),
            }
        }
        Ok(())
    }

    /// Halves what is too large for the server.
    fn split(&mut self, mut batch: Vec<Document>, reply: &Reply, batches: &mut Vec<Vec<Document>>) {
        if let [only] = &batch[..] {
            let only = only.clone();
            return self.note_refusal(&only, &reply.reason());
        }
        let second = batch.split_off(batch.len() / 2);
        batches.extend([second, batch]);
    }

    fn lines(&self, batch: &[Document]) -> String {
        let mut lines = String::new();
        for document in batch {
            let name = self.version.index(document.kind, self.began_ms);
            let action = json!({ "index": { "_index": name, "_id": document.id } });
            lines += &format!("{action}\n{}\n", document.body);
        }
        lines
    }

    /// What became of each document. Those that may succeed later come back, with a reason.
    fn read_items(
        &mut self,
        batch: Vec<Document>,
        reply: &Reply,
    ) -> Result<(Vec<Document>, String), IndexError> {
        let answer = parse(reply)?;
        let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        if items.len() != batch.len() {
            let (told, sent) = (items.len(), batch.len());
            return Err(IndexError::Strange(format!("it tells of {told} documents of {sent}")));
        }
        let (mut left, mut why) = (Vec::new(), String::new());
        for (document, item) in batch.into_iter().zip(items) {
            let item = item.as_object().and_then(|item| item.values().next());
            let item = item.unwrap_or(&Value::Null);
            let status = item["status"].as_u64().unwrap_or(0);
            let reason = || {
                let (kind, text) =
                    (item["error"]["type"].as_str(), item["error"]["reason"].as_str());
                let (kind, text) = (kind.unwrap_or("no reason"), text.unwrap_or_default());
                let cause = item["error"]["caused_by"]["reason"].as_str().unwrap_or_default();
                let cause = if cause.is_empty() { String::new() } else { format!(" ({cause})") };
                format!("{kind}: {text}{cause}")
            };
            // A full disk blocks indices with either of two statuses.
            let is_blocked = item["error"]["type"] == "cluster_block_exception";
            match status {
                201 => self.written.created += 1,
                200 => self.written.updated += 1,
                429 | 500..=599 => {
                    why = reason();
                    left.push(document);
                }
                _ if is_blocked => {
                    why = reason();
                    left.push(document);
                }
                _ => self.note_refusal(&document, &reason()),
            }
        }
        Ok((left, why))
    }

    fn note_refusal(&mut self, document: &Document, why: &str) {
        self.written.refused += 1;
        if self.written.refusals.len() < MOST_REFUSALS {
            let name = self.version.index(document.kind, self.began_ms);
            let text: String = format!("{name} {}: {why}", document.id).chars().take(500).collect();
            self.written.refusals.push(text);
        }
    }

    /// What became of the documents until now.
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// Takes what became of them, and begins to count anew.
    pub fn take_written(&mut self) -> Written {
        std::mem::take(&mut self.written)
    }

    /// Forgets what waits: it will be made again.
    pub fn forget_waiting(&mut self) {
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    /// Deletes the series of a run with their points.
    ///
    /// # Errors
    /// Where the server fails.
    pub fn delete_series(&mut self, run: &str) -> Result<(), IndexError> {
        let of_run = self.version.id_path(DocumentKind::Run);
        let of_desc = self.version.id_path(DocumentKind::MetricDesc);
        let name = run.to_owned();
        if !self.version.data_has_run() {
            let terms = [(of_run.as_str(), std::slice::from_ref(&name))];
            let known = self.find(DocumentKind::MetricDesc, &terms, &[&of_desc])?;
            let field = self.version.id_field(DocumentKind::MetricDesc);
            let ids: Vec<&str> =
                known.iter().filter_map(|one| one["metric_desc"][&field].as_str()).collect();
            for ids in ids.chunks(IDS) {
                self.delete(
                    DocumentKind::MetricData,
                    &json!({ "terms": { of_desc.as_str(): ids } }),
                )?;
            }
        } else {
            self.delete(DocumentKind::MetricData, &json!({ "term": { of_run.as_str(): name } }))?;
        }
        self.delete(DocumentKind::MetricDesc, &json!({ "term": { of_run.as_str(): name } }))
    }

    fn delete(&mut self, kind: DocumentKind, query: &Value) -> Result<(), IndexError> {
        let name = self.version.index(kind, self.began_ms);
        // What was written just now is seen by no query before.
        self.ask("POST", &format!("/{name}/_refresh"), "")?;
        let path = format!("/{name}/_delete_by_query?conflicts=proceed&refresh=true");
        let answer = self.ask("POST", &path, &json!({ "query": query }).to_string())?;
        let failures = answer["failures"].as_array().map(Vec::as_slice).unwrap_or_default();
        match (failures.first(), answer["timed_out"] == true) {
            (None, false) => Ok(()),
            (first, _) => {
                let why = first.map_or("it took too long".to_owned(), |first| {
                    let why = reason_of(first, "cause").or(reason_of(first, "reason"));
                    why.unwrap_or_else(|| "no reason".to_owned())
                });
                Err(IndexError::Refused(format!("to delete all documents of {name}: {why}")))
            }
        }
    }

    /// Makes what was written visible to queries.
    ///
    /// # Errors
    /// Where the server fails.
    pub fn refresh(&mut self) -> Result<(), IndexError> {
        for kind in DocumentKind::ALL {
            let name = self.version.index(kind, self.began_ms);
            self.ask("POST", &format!("/{name}/_refresh"), "")?;
        }
        Ok(())
    }

    /// The documents of a kind for which each field, named by its path, has one of its values, ordered by fields that
    /// tell any two of them apart.
    ///
    /// # Errors
    /// Where the server fails, or has too many.
    pub fn find(
        &mut self,
        kind: DocumentKind,
        terms: &[(&str, &[String])],
        order: &[&str],
    ) -> Result<Vec<Value>, IndexError> {
        let mut found = Vec::new();
        self.each_page(kind, terms, order, MOST_FOUND_BYTES, |document| {
            found.push(document.clone());
            match found.len() {
                0..=MOST_FOUND => Ok(()),
                _ => Err(IndexError::Strange(format!(
                    "it has more than {MOST_FOUND} documents of these"
                ))),
            }
        })?;
        Ok(found)
    }

    /// Gives such documents to a function, page by page.
    ///
    /// # Errors
    /// Where the server fails, or the function's own.
    pub fn each(
        &mut self,
        kind: DocumentKind,
        terms: &[(&str, &[String])],
        order: &[&str],
        take: impl FnMut(&Value) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        self.each_page(kind, terms, order, usize::MAX, take)
    }

    /// As [`Self::each`], while all pages together have no more than so many bytes.
    fn each_page(
        &mut self,
        kind: DocumentKind,
        terms: &[(&str, &[String])],
        order: &[&str],
        most_bytes: usize,
        mut take: impl FnMut(&Value) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let indices = self.version.indices(kind);
        let path = format!(
            "/{indices}/_search?ignore_unavailable=true&allow_partial_search_results=false"
        );
        let mut bytes_left = most_bytes;
        let filters: Vec<Value> =
            terms.iter().map(|(field, values)| json!({ "terms": { (*field): values } })).collect();
        // An index of another writer may lack a field that is sorted by, and is no reason to fail.
        let fields = mapping(kind, self.version);
        let sort = order.iter().map(|field| {
            json!({ (*field): { "order": "asc", "unmapped_type": type_of(&fields, field) } })
        });
        let sort: Vec<Value> = sort.collect();
        let mut query = json!({
            "size": PAGE, "sort": sort, "query": { "bool": { "filter": filters } },
        });
        loop {
            let reply = self.ask_for_reply("POST", &path, &query.to_string())?;
            bytes_left = bytes_left.checked_sub(reply.body.len()).ok_or_else(|| {
                IndexError::Strange(format!(
                    "its {} documents of these have more than {most_bytes} bytes",
                    kind.name()
                ))
            })?;
            let answer = parse(&reply)?;
            whole(&answer)?;
            let hits = answer["hits"]["hits"].as_array().map(Vec::as_slice).unwrap_or_default();
            hits.iter().try_for_each(|hit| take(&hit["_source"]))?;
            let last = hits.last().map(|hit| hit["sort"].clone()).unwrap_or_default();
            if hits.len() < PAGE {
                return Ok(());
            }
            if last.is_null() || query["search_after"] == last {
                return Err(IndexError::Strange("its pages don't end".to_owned()));
            }
            if let Some(fields) = query.as_object_mut() {
                fields.insert("search_after".to_owned(), last);
            }
        }
    }

    /// Asks for JSON.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Value, IndexError> {
        parse(&self.ask_for_reply(method, path, body)?)
    }

    fn ask_for_reply(&mut self, method: &str, path: &str, body: &str) -> Result<Reply, IndexError> {
        let reply = self.exchange_patiently(method, path, body)?;
        match reply.status {
            200..=299 => Ok(reply),
            _ => Err(refusal(&format!("{method} {path}"), &reply)),
        }
    }

    /// Sends a request until the server takes or refuses it.
    fn exchange_patiently(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<Reply, IndexError> {
        let request = Request { method, path, body };
        Ok(send_patiently(&mut self.exchange, &request, self.tries, may_pass)?)
    }

    fn wait(
        &mut self,
        failures: u32,
        asked: Option<Duration>,
        why: &str,
    ) -> Result<(), IndexError> {
        Ok(wait(&mut self.exchange, failures, self.tries, asked, why)?)
    }
}

/// Whether the same request may succeed later.
fn may_pass(status: u16) -> bool {
    matches!(status, 429 | 500..=599)
}

/// Refuses the answer to a search in which some of the documents may be missing.
fn whole(answer: &Value) -> Result<(), IndexError> {
    let shards = &answer["_shards"];
    let failed = shards["failed"].as_u64().unwrap_or(0);
    match (failed, answer["timed_out"] == true) {
        (0, false) => Ok(()),
        (0, true) => Err(IndexError::Away("its search took too long and is not whole".to_owned())),
        (failed, _) => {
            let why = reason_of(&shards["failures"][0], "reason").unwrap_or_default();
            let text = format!("{failed} of its shards did not answer a search: {why}");
            Err(IndexError::Away(text.trim_end_matches([':', ' ']).to_owned()))
        }
    }
}

/// The reason within this field of a failure.
fn reason_of(failure: &Value, field: &str) -> Option<String> {
    let reason = failure[field]["reason"].as_str()?;
    Some(reason.chars().take(300).collect())
}

fn parse(reply: &Reply) -> Result<Value, IndexError> {
    serde_json::from_str(&reply.body)
        .map_err(|error| IndexError::Strange(format!("its answer is no JSON: {error}")))
}

fn refusal(what: &str, reply: &Reply) -> IndexError {
    let why = format!("{what}: {}", reply.reason());
    match reply.status {
        401 => IndexError::Denied(why + "; give a credential, as docs/opensearch.md says"),
        403 => IndexError::Denied(why + "; the credential has not the permission"),
        _ => IndexError::Refused(why),
    }
}
