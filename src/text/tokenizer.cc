#include "text/tokenizer.h"

#include <algorithm>
#include <iterator>

#include "base/str_cat.h"
#include "text/algorithm.h"
#include "text/partition.h"

namespace stoker::text {
namespace {

constexpr std::string_view kBpeModels[] = {"gpt2", "gemma4", "whitespace"};

bool is_bpe(std::string_view model) {
  return std::find(std::begin(kBpeModels), std::end(kBpeModels), model) != std::end(kBpeModels);
}

Error unsupported(std::string what) { return Error{ErrorCode::kUnsupported, std::move(what)}; }

// Two models imply their pre-tokenizer. A file without the key is an old one, and was meant for the default list.
std::string pre_of(const Source& source) {
  if (source.model == "gemma4" || source.model == "whitespace") return source.model;
  return source.pre.value_or("default");
}

Result<const Pretokenizer*> pretokenizer_of(Source& source) {
  if (!is_bpe(source.model)) return static_cast<const Pretokenizer*>(nullptr);
  std::string name = pre_of(source);
  const Pretokenizer* pre = find_pretokenizer(name);
  if (pre == nullptr)
    return unsupported(str_cat("tokenizer.ggml.pre: the pre-tokenizer ", quoted(name),
                               " is not known to this version; its text would be cut wrongly"));
  if (source.model == "whitespace" && source.lowercase.value_or(false))
    return unsupported("tokenizer.ggml.normalizer.lowercase is not supported for the tokenizer model 'whitespace'");
  if (!source.has_merges)
    return Error{ErrorCode::kCorrupt,
                 str_cat("tokenizer.ggml.merges: absent, and the tokenizer model ", quoted(source.model),
                         " joins nothing without them: convert the model again")};
  if (!source.pre.has_value() && source.model == "gpt2")
    source.notes.push_back("tokenizer.ggml.pre is absent: the list named 'default' cuts the text");
  source.no_default_bos = pre->no_default_bos;
  return pre;
}

Result<std::unique_ptr<Algorithm>> make_algorithm(const Source& source, Vocab& vocab, const Pretokenizer* pre) {
  if (pre != nullptr) return make_bpe(source, vocab, *pre);
  if (source.model == "llama") return make_spm(source, vocab, source.add_space_prefix.value_or(true));
  if (source.model == "bert") return make_wordpiece(source, vocab);
  if (source.model == "t5") return make_unigram(source, vocab);
  if (source.model == "test") return make_test_hash(vocab);
  return unsupported(str_cat("tokenizer.ggml.model: ", quoted(source.model),
                             " is not supported by this version (gpt2, gemma4, whitespace, llama, bert and t5 are)"));
}

}  // namespace

/// Whether a separator stands between two texts, behind what ends the first one. WordPiece ends texts with that
/// already, whatever old files say; XLM-R, which has two, is known by its architecture where they say nothing.
bool separates(const Source& source, const Pretokenizer* pre) {
  if (source.model == "bert" && !source.add_eos) return false;
  const bool xlm_r = source.model == "t5" && source.architecture == "bert";
  return source.add_sep.value_or(xlm_r || (pre != nullptr && pre->add_separator));
}

struct Tokenizer::Impl {
  Vocab vocab;
  std::unique_ptr<Algorithm> algorithm;  // Refers to `vocab`.
  std::unique_ptr<Partition> partition;
  std::string model, pre_name;
  std::vector<TokenId> suppressed;
  TokenId last = kNoToken;       // What add_eos adds.
  TokenId separator = kNoToken;  // What stands behind that, between two texts.
  bool add_bos = false, add_eos = false, add_space_prefix = false;

  void set_flags(const Source& source, const Pretokenizer* pre) {
    const bool spm = source.model == "llama", bert = source.model == "bert", unigram = source.model == "t5";
    add_bos =
        source.add_bos.value_or(spm || bert || (pre != nullptr && pre->add_bos)) || (pre != nullptr && pre->force_bos);
    add_eos = source.add_eos.value_or(bert || unigram);
    last = vocab.role(bert ? Role::kSeparator : Role::kEos);
    if (add_bos && vocab.role(Role::kBos) == kNoToken) {
      vocab.notes.push_back("tokenizer.ggml.add_bos_token is set and there is no BOS token: none is added");
      add_bos = false;
    }
    add_eos = add_eos && last != kNoToken;
    if (separates(source, pre)) set_separator(unigram);
    add_space_prefix = bert || ((spm || unigram) && source.add_space_prefix.value_or(spm));
    model = source.model;
    pre_name = source.pre.value_or("");
    suppressed = source.suppressed;
  }

  void set_separator(bool unigram) {
    separator = vocab.role(Role::kSeparator);
    if (separator == kNoToken && unigram) separator = last;  // XLM-R's is its EOS
    if (separator == kNoToken) {
      vocab.notes.push_back("tokenizer.ggml.add_sep_token is set and there is no separator: none is added");
    }
  }
};

Tokenizer::Tokenizer() : impl_(std::make_unique<Impl>()) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const gguf::File& file) {
  STOKER_TRY(Source source, read_source(file));
  STOKER_TRY(const Pretokenizer* pre, pretokenizer_of(source));
  std::unique_ptr<Tokenizer> out(new Tokenizer);
  Impl& impl = *out->impl_;
  TextForm form = pre != nullptr && !pre->plain_utf8 ? TextForm::kMapped : TextForm::kBlanks;
  STOKER_TRY(impl.vocab, build_vocab(source, form));
  STOKER_TRY(impl.algorithm, make_algorithm(source, impl.vocab, pre));
  STOKER_TRY(Partition partition, Partition::build(source, impl.vocab));
  impl.partition = std::make_unique<Partition>(std::move(partition));
  impl.set_flags(source, pre);
  return out;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<TokenId> out;
  if (options.add_special && add_bos()) out.push_back(bos());
  bool at_start = true;
  for (const Fragment& fragment : impl_->partition->cut(text, options.parse_special)) {
    at_start = at_start || fragment.token != kNoToken;
    if (fragment.token != kNoToken) {
      out.push_back(fragment.token);
    } else {
      impl_->algorithm->encode(fragment.text, at_start, out);
      at_start = false;
    }
  }
  if (options.add_special && add_eos()) out.push_back(impl_->last);
  return out;
}

std::vector<TokenId> Tokenizer::encode(std::span<const Part> parts) const {
  std::vector<TokenId> out;
  std::string text;
  const auto finish = [&] {
    const std::vector<TokenId> ids = encode(text, {.parse_special = false});
    out.insert(out.end(), ids.begin(), ids.end());
    text.clear();
  };
  for (const Part& part : parts) {
    if (!part.parse_special) {
      text += part.text;
      continue;
    }
    for (const Fragment& fragment : impl_->partition->cut(part.text, true)) {
      if (fragment.token == kNoToken) {
        text += fragment.text;
        continue;
      }
      finish();
      out.push_back(fragment.token);
    }
  }
  finish();
  return out;
}

Tokenizer::Pair Tokenizer::encode_pair(std::string_view first, std::string_view second) const {
  Pair pair;
  const auto add = [&](std::string_view text) {
    const std::vector<TokenId> ids = encode(text, {.parse_special = false});
    pair.ids.insert(pair.ids.end(), ids.begin(), ids.end());
  };
  if (add_bos()) pair.ids.push_back(bos());
  add(first);
  if (add_eos()) pair.ids.push_back(impl_->last);
  if (impl_->separator != kNoToken) pair.ids.push_back(impl_->separator);
  pair.second = pair.ids.size();
  add(second);
  if (add_eos()) pair.ids.push_back(impl_->last);
  return pair;
}

bool Tokenizer::joins_pairs() const { return add_eos() || impl_->separator != kNoToken; }

std::string_view Tokenizer::token_bytes(TokenId id, DecodeOptions options) const {
  return impl_->vocab.decoded(id, options.show_special);
}

std::string Tokenizer::decode_bytes(std::span<const TokenId> ids, DecodeOptions options) const {
  std::string out;
  for (TokenId id : ids) out += token_bytes(id, options);
  return out;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
  size_t n_before = 0;  // Control tokens before the text, BOS as a rule.
  auto is_control = [&](TokenId id) { return kind(id) == TokenKind::kControl || kind(id) == TokenKind::kUnknown; };
  while (n_before < ids.size() && is_control(ids[n_before])) ++n_before;
  std::string bytes = decode_bytes(ids.subspan(n_before), options);
  // A user-defined token is not preceded by the space that encoding adds.
  bool prefixed = impl_->add_space_prefix && n_before < ids.size() && kind(ids[n_before]) != TokenKind::kUserDefined;
  std::string_view rest = bytes;
  if (prefixed && rest.starts_with(' ')) rest.remove_prefix(1);
  Utf8Stream stream;
  std::string out = stream.push(decode_bytes(ids.first(n_before), options));
  out += stream.push(rest);
  out += stream.finish();
  return out;
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(impl_->vocab.size()); }

std::string_view Tokenizer::piece(TokenId id) const {
  return id >= 0 && id < vocab_size() ? impl_->vocab.pieces[static_cast<size_t>(id)] : std::string_view();
}

TokenKind Tokenizer::kind(TokenId id) const {
  return id >= 0 && id < vocab_size() ? impl_->vocab.kinds[static_cast<size_t>(id)] : TokenKind::kUndefined;
}

bool Tokenizer::is_end(TokenId id) const {
  return id >= 0 && id < vocab_size() && impl_->vocab.ends[static_cast<size_t>(id)];
}

TokenId Tokenizer::bos() const { return impl_->vocab.role(Role::kBos); }
TokenId Tokenizer::eos() const { return impl_->vocab.role(Role::kEos); }
bool Tokenizer::add_bos() const { return impl_->add_bos; }
bool Tokenizer::add_eos() const { return impl_->add_eos; }
std::string_view Tokenizer::model_name() const { return impl_->model; }
std::string_view Tokenizer::pre_name() const { return impl_->pre_name; }
std::span<const TokenId> Tokenizer::suppressed() const { return impl_->suppressed; }
const std::vector<std::string>& Tokenizer::notes() const { return impl_->vocab.notes; }

}  // namespace stoker::text
