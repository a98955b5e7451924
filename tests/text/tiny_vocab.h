#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "text/byte_map.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace stoker::text {

/// A vocabulary of a few tokens that a test makes up, loaded through a file as a real one is.
struct TinyVocab {
  std::string model, pre;
  std::string architecture = "llama";
  std::vector<std::string> tokens, merges;
  bool has_merges = true;
  std::vector<int32_t> kinds;
  std::vector<float> scores;
  std::vector<std::pair<std::string, gguf::Value>> more;  ///< Keys without "tokenizer.ggml.".

  /// Byte-level BPE; ids 0 to 255 are the bytes.
  static TinyVocab bytes(std::string pre) {
    TinyVocab out;
    out.model = "gpt2";
    out.pre = std::move(pre);
    for (int byte = 0; byte < 256; ++byte) {
      std::string text;
      append_utf8(text, char_of_byte(static_cast<uint8_t>(byte)));
      out.add(text);
    }
    return out;
  }
  /// SentencePiece; 0 <unk>, 1 <s>, 2 </s>, from 3 on <0x00> to <0xFF>.
  static TinyVocab blanks(std::string model = "llama") {
    TinyVocab out;
    out.model = std::move(model);
    out.add("<unk>", TokenKind::kUnknown);
    out.add("<s>", TokenKind::kControl);
    out.add("</s>", TokenKind::kControl);
    constexpr char kHex[] = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte)
      out.add(str_cat("<0x", kHex[byte >> 4], kHex[byte & 15], ">"), TokenKind::kByte);
    return out;
  }

  TokenId add(std::string text, TokenKind kind = TokenKind::kNormal, float score = 0) {
    tokens.push_back(std::move(text));
    kinds.push_back(static_cast<int32_t>(kind));
    scores.push_back(score);
    return static_cast<TokenId>(tokens.size() - 1);
  }
  /// The token and the merge that makes it.
  TokenId merged(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    return add(left + right);
  }
  void set(const std::string& key, bool value) { more.push_back({key, {gguf::ValueType::kBool, value}}); }
  void set(const std::string& key, int64_t value) { more.push_back({key, {gguf::ValueType::kU32, value}}); }

  Result<std::unique_ptr<Tokenizer>> load() const {
    gguf::Writer writer(architecture);
    if (!model.empty()) writer.add_string("tokenizer.ggml.model", model);
    if (!pre.empty()) writer.add_string("tokenizer.ggml.pre", pre);
    writer.add_strings("tokenizer.ggml.tokens", tokens);
    if (!kinds.empty()) writer.add_i32s("tokenizer.ggml.token_type", kinds);
    if (!scores.empty()) writer.add_f32s("tokenizer.ggml.scores", scores);
    if (has_merges) writer.add_strings("tokenizer.ggml.merges", merges);
    for (const auto& [key, value] : more)
      writer.add(key.starts_with("general.") ? key : str_cat("tokenizer.ggml.", key), value);
    std::string path = str_cat(testing::TempDir(), "stoker-vocab-", getpid(), ".gguf");
    Status written = writer.write(path);
    if (!written) return std::move(written).error();
    auto file = gguf::File::open(path);
    std::remove(path.c_str());
    if (!file) return std::move(file).error();
    return Tokenizer::from_gguf(*file);
  }
  /// A failure and null where it does not load.
  std::unique_ptr<Tokenizer> must() const {
    auto out = load();
    if (!out) {
      ADD_FAILURE() << out.error().message;
      return nullptr;
    }
    return std::move(out).value();
  }
};

using Ids = std::vector<TokenId>;

}  // namespace stoker::text
