#include "text/algorithm.h"
#include "text/bpe_symbols.h"
#include "text/merge.h"
#include "text/whole_pieces.h"
#include "text/word_cuts.h"

namespace stoker::text {
namespace {

class Bpe final : public Algorithm {
 public:
  Bpe(const Vocab& vocab, const Pretokenizer& pre, BpeSymbols symbols)
      : pre_(pre), symbols_(std::move(symbols)), whole_(vocab.size()) {
    if (pre.plain_utf8) symbols_.for_texts([&](std::string_view text) { cuts_.learn(text); });
  }

  void encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    Run run(*this, out);
    if (!pre_.plain_utf8 || pre_.drop_space) return split(pre_.passes, text, run);
    std::string blanks;
    append_spaces_as_blanks(blanks, text);
    split(pre_.passes, blanks, run);
  }

 private:
  // One call of encode: where the pieces arrive.
  class Run final : public PieceSink {
   public:
    Run(const Bpe& bpe, std::vector<TokenId>& out) : bpe_(bpe), out_(out) {}

    void piece(std::string_view text) override {
      if (!bpe_.pre_.plain_utf8) return word(text);
      if (bpe_.pre_.drop_space && Scanner(text).one(kSpaceClass, 0) > 0) return;
      for (size_t pos = 0, end; pos < text.size(); pos = end) {
        end = bpe_.cuts_.next(text, pos);
        word(text.substr(pos, end - pos));
      }
    }

   private:
    void word(std::string_view text) {
      TokenId whole = bpe_.symbols_.token(text);
      if (whole == kNoToken) return merge(text);
      bool newlines = bpe_.pre_.whole_newlines && text.find_first_not_of('\n') == std::string_view::npos;
      if (bpe_.pre_.ignore_merges || newlines || bpe_.whole_.state(whole) == WholePieces::kYes)
        return out_.push_back(whole);
      size_t before = out_.size();
      merge(text);
      if (bpe_.whole_.state(whole) == WholePieces::kUnknown)
        bpe_.whole_.learn(whole, out_.size() == before + 1 && out_.back() == whole);
    }

    void merge(std::string_view text) {
      scratch_.clear();
      bpe_.symbols_.cut(text, scratch_);
      merge_all(scratch_,
                [&](int32_t left, int32_t right, size_t, size_t) { return bpe_.symbols_.merge(left, right); });
      for (size_t i = 0; i < scratch_.size(); ++i) {
        TokenId id = scratch_.ids[i];
        if (bpe_.symbols_.is_token(id)) {
          out_.push_back(id);
        } else {
          bpe_.symbols_.append_bytes(text.substr(scratch_.starts[i], scratch_.starts[i + 1] - scratch_.starts[i]),
                                     out_);
        }
      }
    }

    const Bpe& bpe_;
    std::vector<TokenId>& out_;
    Symbols scratch_;
  };

  const Pretokenizer& pre_;
  BpeSymbols symbols_;
  WordCuts cuts_;
  mutable WholePieces whole_;
};

}  // namespace

Result<std::unique_ptr<Algorithm>> make_bpe(const Source& source, Vocab& vocab, const Pretokenizer& pre) {
  STOKER_TRY(BpeSymbols symbols, BpeSymbols::build(source, vocab));
  return std::unique_ptr<Algorithm>(std::make_unique<Bpe>(vocab, pre, std::move(symbols)));
}

}  // namespace stoker::text
