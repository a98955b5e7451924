#include "gguf/not_gguf.h"

#include <algorithm>
#include <string_view>

#include "base/str_cat.h"

namespace stoker::gguf {
namespace {

struct Known {
  std::string_view prefix;
  std::string_view text;
};

constexpr std::string_view kOld = "an old GGML file from before GGUF: convert the original model to GGUF";

constexpr Known kKnown[] = {
    {"FUGG", "its magic is written backwards (\"FUGG\"): the program that wrote it mixed up the byte order"},
    {"lmgg", kOld},  // "ggml", "ggmf", "ggjt", "ggla" as little-endian words, then as text
    {"fmgg", kOld},
    {"tjgg", kOld},
    {"algg", kOld},
    {"ggml", kOld},
    {"ggmf", kOld},
    {"ggjt", kOld},
    {"ggla", kOld},
    {"PK\x03\x04", "a zip archive (PyTorch weights?): convert the model to GGUF"},
    {"version https://git-lfs", "a Git LFS pointer, not the file itself: fetch it with \"git lfs pull\""},
    {"<!DOCTYPE", "a web page: download the file itself"},
    {"<!doctype", "a web page: download the file itself"},
    {"<html", "a web page: download the file itself"},
};

bool looks_like_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : (c == '\n' || c == '\r' || c == '\t');
  });
}

}  // namespace

std::string describe_not_gguf(std::span<const std::byte> first) {
  const std::string_view bytes(reinterpret_cast<const char*>(first.data()), first.size());
  if (bytes.empty()) return "not a GGUF file: it is empty";
  for (const Known& known : kKnown)
    if (bytes.substr(0, known.prefix.size()) == known.prefix) return str_cat("not a GGUF file: ", known.text);
  // A safetensors file begins with the length of a JSON object.
  if (bytes.size() > 9 && bytes[8] == '{' && (bytes[9] == '"' || bytes[9] == ' '))
    return "not a GGUF file: a safetensors file: convert the model to GGUF";
  if (looks_like_text(bytes)) return str_cat("not a GGUF file: text that begins ", quoted(bytes, 24));
  return str_cat("not a GGUF file: it begins with ", quoted(bytes.substr(0, 4)), ", not with 'GGUF'");
}

}  // namespace stoker::gguf
