#include "text/bpe_symbols.h"

#include <limits>

#include "base/str_cat.h"
#include "text/byte_map.h"
#include "text/utf8.h"

namespace stoker::text {

// Fills a BpeSymbols.
class BpeLoader {
 public:
  BpeLoader(const Source& source, Vocab& vocab, BpeSymbols& out)
      : source_(source), vocab_(vocab), out_(out), keys_(vocab.form == TextForm::kMapped ? vocab.bytes : vocab.pieces) {
    out_.form_ = vocab.form;
    out_.n_tokens_ = vocab.size();
    out_.keys_ = &keys_;
  }

  Status run() {
    add_tokens();
    STOKER_TRY_STATUS(add_merges());
    add_byte_tokens();
    return Ok{};
  }

 private:
  void add_tokens() {
    n_same_ = out_.table_.insert_all(keys_, vocab_.reachable);
    if (n_same_ > 0) note(n_same_, " tokens have the text of another one: text becomes the one with the highest id");
    out_.of_byte_.fill(-1);
    for (int byte = 0; byte < 256; ++byte) {
      char c = static_cast<char>(byte);
      int32_t symbol = out_.table_.find(keys_, {&c, 1});
      // Merges may name a byte that is no token.
      if (symbol < 0 && vocab_.form == TextForm::kMapped) symbol = intern({&c, 1});
      out_.of_byte_[static_cast<size_t>(byte)] = symbol;
    }
  }

  Status add_merges() {
    out_.merges_.reserve(source_.merges.size());
    for (size_t rank = 0; rank < source_.merges.size(); ++rank) {
      std::string_view merge = source_.merges[rank];
      // A part may itself begin with a space.
      size_t space = merge.find(' ', 1);
      if (space == std::string_view::npos || space + 1 == merge.size())
        return Error{ErrorCode::kCorrupt, str_cat("tokenizer.ggml.merges: entry ", rank, " is ", quoted(merge),
                                                  ", wanted two parts with a space between them")};
      start_merge(static_cast<uint32_t>(rank), merge.substr(0, space), merge.substr(space + 1));
      if (n_pending_ == kBatch) finish_merges();
    }
    finish_merges();
    if (n_unmapped_ > 0) note(n_unmapped_, " merges have characters that stand for no byte: they can never apply");
    if (n_new_ > 0) note(n_new_, " merges make a text that is no token");
    return Ok{};
  }

  // Loading waits for memory more than for anything else, so merges go through in batches: first all texts and hashes,
  // then all symbols, then all entries, each step having asked for what the next one reads.
  struct Pending {
    uint32_t rank;
    std::string joined;
    size_t left_size;
    uint64_t left_hash, right_hash;
    int32_t left, right, result;
    std::string_view left_text() const { return std::string_view(joined).substr(0, left_size); }
    std::string_view right_text() const { return std::string_view(joined).substr(left_size); }
  };
  static constexpr size_t kBatch = 32;

  void start_merge(uint32_t rank, std::string_view left, std::string_view right) {
    Pending& merge = pending_[n_pending_];
    merge.rank = rank;
    merge.joined.clear();
    if (!append_text(merge.joined, left)) return;
    merge.left_size = merge.joined.size();
    if (!append_text(merge.joined, right)) return;
    merge.left_hash = out_.table_.hash(merge.left_text());
    merge.right_hash = out_.table_.hash(merge.right_text());
    out_.table_.prefetch(merge.left_hash);
    out_.table_.prefetch(merge.right_hash);
    ++n_pending_;
  }

  bool append_text(std::string& out, std::string_view part) {
    if (vocab_.form != TextForm::kMapped) {
      out += part;
      return true;
    }
    bool mapped = append_unmapped(out, part);
    if (!mapped) ++n_unmapped_;
    return mapped;
  }

  void finish_merges() {
    auto pending = std::span(pending_).first(n_pending_);
    for (const Pending& merge : pending) {
      out_.table_.prefetch_text(keys_, merge.left_hash);
      out_.table_.prefetch_text(keys_, merge.right_hash);
    }
    for (Pending& merge : pending) {
      merge.left = symbol(merge.left_text(), merge.left_hash);
      merge.right = symbol(merge.right_text(), merge.right_hash);
      merge.result = last_result_ = symbol_near_last(merge.joined);
      if (!out_.is_token(merge.result)) ++n_new_;
      out_.merges_.prefetch(merge.left, merge.right);
    }
    for (const Pending& merge : pending) out_.merges_.insert(merge.left, merge.right, {merge.rank, merge.result});
    n_pending_ = 0;
  }

  // Merges are mostly written in the order of the tokens that they make: look there before asking the table.
  int32_t symbol_near_last(std::string_view text) {
    for (int32_t id : {last_result_ + 1, last_result_})
      if (n_same_ == 0 && out_.is_token(id) && vocab_.reachable[static_cast<size_t>(id)] &&
          keys_[static_cast<size_t>(id)] == text)
        return id;
    return symbol(text, out_.table_.hash(text));
  }

  int32_t symbol(std::string_view text, uint64_t hash) {
    int32_t found = out_.table_.find(keys_, text, hash);
    return found >= 0 ? found : intern(text);
  }

  int32_t intern(std::string_view text) {
    keys_.add(text);
    int32_t id = static_cast<int32_t>(keys_.size() - 1);
    out_.table_.insert(keys_, id);
    return id;
  }

  void add_byte_tokens() {
    size_t n_missing = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
      TokenId id = vocab_.byte_tokens[byte];
      if (out_.is_token(out_.of_byte_[byte]) && (vocab_.form == TextForm::kMapped || id == kNoToken))
        id = out_.of_byte_[byte];
      out_.byte_tokens_[byte] = id;
      if (id == kNoToken) ++n_missing;
    }
    if (n_missing > 0) note(n_missing, " bytes have no token: text with them loses them");
  }

  void note(size_t count, std::string_view what) { vocab_.notes.push_back(str_cat("tokenizer: ", count, what)); }

  const Source& source_;
  Vocab& vocab_;
  BpeSymbols& out_;
  Texts& keys_;
  std::array<Pending, kBatch> pending_;
  size_t n_pending_ = 0;
  int32_t last_result_ = -1;
  size_t n_same_ = 0, n_unmapped_ = 0, n_new_ = 0;
};

Result<BpeSymbols> BpeSymbols::build(const Source& source, Vocab& vocab) {
  BpeSymbols out;
  STOKER_TRY_STATUS(BpeLoader(source, vocab, out).run());
  return out;
}

void BpeSymbols::cut(std::string_view text, Symbols& out) const {
  for (size_t pos = 0; pos < text.size();) {
    uint8_t byte = static_cast<uint8_t>(text[pos]);
    if (form_ == TextForm::kMapped || byte < 128) {
      out.add(of_byte_[byte], pos++);
      continue;
    }
    Utf8Char c = decode_utf8(text.substr(pos));
    out.add(c.valid ? table_.find(*keys_, text.substr(pos, c.size)) : -1, pos);
    pos += c.size;
  }
  out.starts.push_back(text.size());
}

void BpeSymbols::append_bytes(std::string_view text, std::vector<TokenId>& out) const {
  for (char c : text) {
    TokenId id = byte_tokens_[static_cast<uint8_t>(c)];
    if (id != kNoToken) out.push_back(id);
  }
}

}  // namespace stoker::text
