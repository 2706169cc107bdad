import com.fasterxml.jackson.databind.JsonNode;

import java.util.HashMap;
import java.util.Map;

/** What every client's configuration begins with: the address and, of a secured broker, who asks. */
final class Access {
    private static final String VARIABLE = "COMPATIBILITY_ACCESS";

    private Access() {
    }

    static Map<String, Object> connection(String bootstrap) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        String text = System.getenv(VARIABLE);
        if (text != null) {
            try {
                secure(config, ClientProgram.JSON.readTree(text));
            } catch (java.io.IOException error) {
                throw new IllegalArgumentException(VARIABLE, error);
            }
        }
        return config;
    }

    private static void secure(Map<String, Object> config, JsonNode access) {
        config.put("security.protocol", access.get("protocol").asText());
        config.put("ssl.truststore.type", "PEM");
        config.put("ssl.truststore.location", access.get("authority").asText());
        String mechanism = access.get("mechanism").asText();
        if (!mechanism.isEmpty()) {
            String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
            config.put("sasl.mechanism", mechanism);
            config.put("sasl.jaas.config", String.format(
                    "org.apache.kafka.common.security.%s required username=\"%s\" password=\"%s\";",
                    module, access.get("user").asText(), access.get("password").asText()));
        }
        if (!access.get("certificate").asText().isEmpty()) {
            config.put("ssl.keystore.type", "PEM");
            config.put("ssl.keystore.certificate.chain", read(access.get("certificate").asText()));
            config.put("ssl.keystore.key", read(access.get("key").asText()));
        }
    }

    private static String read(String path) {
        try {
            return java.nio.file.Files.readString(java.nio.file.Path.of(path));
        } catch (java.io.IOException error) {
            throw new IllegalArgumentException(path, error);
        }
    }
}
