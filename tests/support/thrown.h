// What an action throws.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "onehop/error.h"

namespace onehop::testing {

// Returns the message of the E that `act` throws, or nothing.
template <class E = Error, class Act>
std::string message_of(const Act& act) {
  try {
    static_cast<void>(act());
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

// Returns the message of the E that `act` throws; any other outcome is a test failure.
template <class E = Error, class Act>
std::string thrown(const Act& act) {
  std::string message = message_of<E>(act);
  if (message.empty()) ADD_FAILURE() << "nothing was thrown";
  return message;
}

// Expects that `act` throws an E whose message contains all of these words.
template <class E = Error, class Act, class... Words>
void expect_says(const Act& act, const Words&... words) {
  const std::string said = thrown<E>(act);
  for (const std::string& word : {std::string(words)...}) EXPECT_NE(said.find(word), std::string::npos) << said;
}

}  // namespace onehop::testing

#define EXPECT_SAYS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)
