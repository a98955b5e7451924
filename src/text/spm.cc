#include "base/str_cat.h"
#include "text/algorithm.h"
#include "text/merge.h"
#include "text/utf8.h"
#include "text/whole_pieces.h"
#include "text/word_cuts.h"

namespace stoker::text {
namespace {

// SentencePiece: characters are joined while the joined text is a token, the one with the best score first.
class Spm final : public Algorithm {
 public:
  Spm(const Source& source, Vocab& vocab, bool add_space_prefix)
      : vocab_(vocab), ranks_(source.score_ranks), add_space_prefix_(add_space_prefix), whole_(vocab.size()) {
    size_t n_same = table_.insert_all(vocab.pieces, vocab.reachable);
    for (size_t id = 0; id < vocab.size(); ++id) {
      if (!vocab.reachable[id]) continue;
      cuts_.learn(vocab.pieces[id]);
      longest_ = std::max(longest_, vocab.pieces[id].size());
    }
    if (n_same > 0)
      vocab.notes.push_back(
          str_cat("tokenizer: ", n_same, " tokens have the text of another one: the highest id counts"));
    add_byte_tokens(vocab);
  }

  void encode(std::string_view text, bool at_start, std::vector<TokenId>& out) const override {
    std::string blanks;
    blanks.reserve(text.size() + text.size() / 2 + 3);
    if (add_space_prefix_ && at_start) blanks += kBlankSign;
    append_spaces_as_blanks(blanks, text);
    Symbols scratch;
    for (size_t pos = 0, end; pos < blanks.size(); pos = end) {
      end = cuts_.next(blanks, pos);
      encode_word(std::string_view(blanks).substr(pos, end - pos), scratch, out);
    }
  }

 private:
  void add_byte_tokens(Vocab& vocab) {
    size_t n_missing = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
      char c = static_cast<char>(byte);
      TokenId id = vocab.byte_tokens[byte];
      if (id == kNoToken) id = find({&c, 1});
      if (id == kNoToken) id = vocab.role(Role::kUnknown);
      byte_tokens_[byte] = id;
      if (id == kNoToken) ++n_missing;
    }
    if (n_missing > 0)
      vocab.notes.push_back(str_cat("tokenizer: ", n_missing, " bytes have no token: text with them loses them"));
  }

  TokenId find(std::string_view text) const {
    return text.size() > longest_ ? kNoToken : table_.find(vocab_.pieces, text);
  }

  void encode_word(std::string_view word, Symbols& scratch, std::vector<TokenId>& out) const {
    TokenId whole = find(word);
    if (whole != kNoToken && whole_.state(whole) == WholePieces::kYes) return out.push_back(whole);
    size_t before = out.size();
    merge(word, scratch, out);
    if (whole != kNoToken && whole_.state(whole) == WholePieces::kUnknown)
      whole_.learn(whole, out.size() == before + 1 && out.back() == whole);
  }

  void merge(std::string_view word, Symbols& scratch, std::vector<TokenId>& out) const {
    scratch.clear();
    for (size_t pos = 0; pos < word.size(); pos += decode_utf8(word.substr(pos)).size) scratch.add(kNoToken, pos);
    scratch.starts.push_back(word.size());
    merge_all(scratch, [&](int32_t, int32_t, size_t begin, size_t end) {
      TokenId id = find(word.substr(begin, end - begin));
      return id == kNoToken ? Merge{} : Merge{ranks_[static_cast<size_t>(id)], id};
    });
    for (size_t i = 0; i < scratch.size(); ++i) {
      std::string_view symbol = word.substr(scratch.starts[i], scratch.starts[i + 1] - scratch.starts[i]);
      // What was never joined is one character, which may have a token of its own.
      TokenId id = scratch.ids[i] != kNoToken ? scratch.ids[i] : find(symbol);
      if (id != kNoToken) {
        out.push_back(id);
      } else {
        append_bytes(symbol, out);
      }
    }
  }

  void append_bytes(std::string_view text, std::vector<TokenId>& out) const {
    for (char c : text) {
      TokenId id = byte_tokens_[static_cast<uint8_t>(c)];
      if (id != kNoToken) out.push_back(id);
    }
  }

  const Vocab& vocab_;
  std::vector<uint32_t> ranks_;
  bool add_space_prefix_;
  TextTable table_;
  WordCuts cuts_;
  size_t longest_ = 0;
  std::array<TokenId, 256> byte_tokens_{};
  mutable WholePieces whole_;
};

}  // namespace

Result<std::unique_ptr<Algorithm>> make_spm(const Source& source, Vocab& vocab, bool add_space_prefix) {
  return std::unique_ptr<Algorithm>(std::make_unique<Spm>(source, vocab, add_space_prefix));
}

}  // namespace stoker::text
