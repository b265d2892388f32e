import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.HexFormat;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Seals and opens payloads with the JDK's own AES/GCM/NoPadding in the published form: ENC(aesgcm:Base64(nonce of 16 bytes, ciphertext, tag of
 * 16 bytes)), no associated data. Reads one command a line:
 *
 * seal KEY NONCE PAYLOAD   prints the envelope; KEY and PAYLOAD in Base64, NONCE in hexadecimal digits or - for a random one
 * open KEY ENVELOPE        prints the payload in Base64, or: refused
 */
public class Sealed {
  private static final String START = "ENC(aesgcm:";

  static String seal(byte[] key, byte[] nonce, byte[] payload) throws GeneralSecurityException {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"), new GCMParameterSpec(128, nonce));
    byte[] sealed = cipher.doFinal(payload);
    byte[] all = new byte[nonce.length + sealed.length];
    System.arraycopy(nonce, 0, all, 0, nonce.length);
    System.arraycopy(sealed, 0, all, nonce.length, sealed.length);
    return START + Base64.getEncoder().encodeToString(all) + ")";
  }

  static byte[] open(byte[] key, String envelope) throws GeneralSecurityException {
    byte[] all = Base64.getDecoder().decode(envelope.substring(START.length(), envelope.length() - 1));
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(Cipher.DECRYPT_MODE, new SecretKeySpec(key, "AES"), new GCMParameterSpec(128, all, 0, 16));
    return cipher.doFinal(all, 16, all.length - 16);
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    SecureRandom random = new SecureRandom();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ", -1);
      byte[] key = Base64.getDecoder().decode(words[1]);
      if (words[0].equals("seal")) {
        byte[] nonce = new byte[16];
        if (words[2].equals("-")) random.nextBytes(nonce);
        else nonce = HexFormat.of().parseHex(words[2]);
        System.out.println(seal(key, nonce, Base64.getDecoder().decode(words[3])));
      } else {
        try {
          System.out.println(Base64.getEncoder().encodeToString(open(key, words[2])));
        } catch (GeneralSecurityException e) {
          System.out.println("refused");
        }
      }
    }
  }
}
