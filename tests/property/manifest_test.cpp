// Manifests of any list, cut into chunks and damaged in any way: what is read is what was written,
// or nothing.

#include "failover/scatter/manifest.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using holdfast::detail::failover::parse_manifest;
using holdfast::detail::failover::write_manifest;

std::vector<std::string> any_keys() {
  const auto key = rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::suchThat<char>([](char c) { return c != '\n'; })));
  return *rc::gen::container<std::vector<std::string>>(key);
}

/// The chunks of a list, so many keys each.
std::vector<std::string> written(std::span<const std::string> keys, std::size_t per_chunk) {
  const std::vector<std::string_view> all(keys.begin(), keys.end());
  const auto chunks = std::max<std::size_t>(1, (all.size() + per_chunk - 1) / per_chunk);
  std::vector<std::string> texts;
  for (std::size_t index = 0; index < chunks; ++index) {
    const auto first = index * per_chunk;
    texts.push_back(
        write_manifest(all.size(), chunks, index,
                       std::span(all).subspan(first, std::min(per_chunk, all.size() - first))));
  }
  return texts;
}

RC_GTEST_PROP(Manifest, AllChunksTogetherAreTheList, ()) {
  const auto keys = any_keys();
  const auto texts = written(keys, *rc::gen::inRange<std::size_t>(1, 6));
  std::vector<std::string> read;
  for (std::size_t index = 0; index < texts.size(); ++index) {
    const auto chunk = parse_manifest(texts[index]);
    RC_ASSERT(chunk.has_value());
    RC_ASSERT(chunk->members == keys.size());
    RC_ASSERT(chunk->chunks == texts.size());
    RC_ASSERT(chunk->index == index);
    read.insert(read.end(), chunk->keys.begin(), chunk->keys.end());
  }
  RC_ASSERT(read == keys);
}

RC_GTEST_PROP(Manifest, AListThatWasCutOffIsNoneOrShorter, ()) {
  const auto keys = any_keys();
  const auto text = written(keys, keys.size() + 1).front();
  const auto cut = text.substr(0, *rc::gen::inRange<std::size_t>(0, text.size()));
  const auto chunk = parse_manifest(cut);
  // A key that lost its end cannot be told from another: then the row is not found. A key that is
  // gone is missed.
  if (chunk) {
    RC_ASSERT(chunk->keys.size() == keys.size());
    RC_ASSERT(std::equal(keys.begin(), keys.end() - 1, chunk->keys.begin()));
    RC_ASSERT(keys.back().starts_with(chunk->keys.back()));
  }
}

RC_GTEST_PROP(Manifest, AnEmptyLineIsNoKey, ()) {
  const auto keys = any_keys();
  RC_PRE(!keys.empty());
  auto text = *rc::gen::elementOf(written(keys, *rc::gen::inRange<std::size_t>(1, 6)));
  std::vector<std::size_t> lines;
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
    lines.push_back(at);
  text.insert(*rc::gen::elementOf(lines), 1, '\n');
  RC_ASSERT(!parse_manifest(text));
}

RC_GTEST_PROP(Manifest, WhatWasDamagedIsRefusedOrAgreesWithItself, ()) {
  const auto keys = any_keys();
  const auto texts = written(keys, *rc::gen::inRange<std::size_t>(1, 6));
  auto text = *rc::gen::elementOf(texts);
  text[*rc::gen::inRange<std::size_t>(0, text.size())] =
      *rc::gen::elementOf(std::string("\n 0129k\0", 8));
  if (const auto chunk = parse_manifest(text)) {
    RC_ASSERT(chunk->index < chunk->chunks);
    RC_ASSERT(chunk->keys.size() <= chunk->members);
    RC_ASSERT(std::none_of(chunk->keys.begin(), chunk->keys.end(),
                           [](const std::string& each) { return each.empty(); }));
    const std::vector<std::string_view> again(chunk->keys.begin(), chunk->keys.end());
    RC_ASSERT(parse_manifest(write_manifest(chunk->members, chunk->chunks, chunk->index, again)) ==
              chunk);
  }
}

}  // namespace
